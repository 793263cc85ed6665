"""nmt attention --align: word alignments of sentence pairs, and their error rate."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from . import show

if TYPE_CHECKING:
    from nmt.analysis.alignment import Alignments
    from nmt.score.alignment import AlignmentScore
    from nmt.search.translate import Translator

Align = Annotated[
    bool,
    typer.Option("--align", help="Align the words of sentence pairs by cross-attention; a line of links for each."),
]
Gold = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--gold",
        metavar="FILE",
        show_default=False,
        help="Of --align: right links, 0-0 for a sure and 1?2 or 1p2 for a possible one; prints the error rate (AER).",
    ),
]


def files_of_align(
    unfit: Mapping[str, object], sentence: str | None, source: str | None, target: str | None, form: str | None
) -> tuple[str, str]:
    """The two files of --align. Raises BadParameter where they are missing, or for what has no meaning for it."""
    if given := [name for name, value in unfit.items() if value]:
        raise typer.BadParameter(f"--align reads pairs, by whole layers: {', '.join(given)} has no meaning for it")
    if sentence is not None or not source or not target:
        raise typer.BadParameter("--align takes --source FILE and --target FILE, and no SENTENCE")
    if form not in {None, "json"}:
        raise typer.BadParameter(f"--align gives lines, or numbers with --format json; {form} is for a SENTENCE")
    return source, target


def align(
    load: Callable[[], Translator],
    source: str,
    target: str,
    gold: str | None,
    layer: int | None,
    form: str,
    output: str,
) -> None:
    """Write the links of each pair; with `gold`, the error rate of each layer; or both as JSON."""
    from nmt.analysis.alignment import Alignments, pharaoh, table
    from nmt.analysis.alignment import align as align_
    from nmt.corpus.lines import open_lines, read_lines
    from nmt.score.alignment import read_gold
    from nmt.score.report import table as columns

    sides = list(read_lines(source)), list(read_lines(target))
    sizes = [(len(one.split()), len(other.split())) for one, other in zip(*sides, strict=False)]
    right = None if gold is None or len(sides[0]) != len(sides[1]) else read_gold(gold, sizes)
    found: list[Alignments] = []

    def shown() -> Iterator[object]:
        for event in align_(load(), *sides):
            if isinstance(event, Alignments):
                found.append(event)
            else:
                yield event

    show.progress(shown())
    result = found[0]
    layer = result.usual + 1 if layer is None else layer
    if layer > len(result.layers):
        raise typer.BadParameter(f"--layer {layer}: this model's cross has {len(result.layers)}")
    scores = None if right is None else result.scores(right)
    if form == "json":
        lines = _json(result, scores)
    else:
        lines = columns(table(result, scores)) if scores else list(map(pharaoh, result.layers[layer - 1]))
    with open_lines(output) as out:
        for line in lines:
            out.write(line)


def _json(result: Alignments, scores: tuple[AlignmentScore, ...] | None) -> list[str]:
    from nmt.analysis.alignment import as_json

    return json.dumps(as_json(result, scores)).split("\n")
