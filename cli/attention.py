"""nmt attention: what the model looks at while it translates a sentence."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

import typer

from . import show
from .align import Align, Gold, files_of_align
from .align import align as align_words
from .options import ContextOption, Device, ModelFolder, Quiet, TagOption, Threads, To, asked_tag
from .translate_options import Beam

if TYPE_CHECKING:
    from nmt.analysis.look import Look
    from nmt.analysis.page import Choice
    from nmt.search.translate import Translator

Sentence = Annotated[
    Optional[str],  # noqa: UP045
    typer.Argument(
        metavar="SENTENCE", show_default=False, help="A sentence of the source; not with --heads or --align."
    ),
]
Target = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--target",
        "-t",
        metavar="TEXT",
        show_default=False,
        help="Its translation; otherwise the model's own. With --heads or --align, a file.",
    ),
]
Output = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        show_default=False,
        help="File to write; - is stdout. Otherwise attention.html or --format's suffix; stdout for --heads, --align.",
    ),
]
Form = Annotated[
    Optional[Literal["html", "json", "png"]],  # noqa: UP045
    typer.Option(
        "--format", show_default=False, help="A page to explore, numbers, or a picture; otherwise by FILE's suffix."
    ),
]
Words = Annotated[bool, typer.Option("--words", help="Subwords merged to words; a page opens with them.")]
KindOf = Annotated[
    Optional[Literal["encoder", "decoder", "cross"]],  # noqa: UP045
    typer.Option("--kind", show_default=False, help="Attention of a picture, or that a page opens with: else cross."),
]
Layer = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--layer", min=1, metavar="N", show_default=False, help="The layer of a picture, or a page's first; from 1."
    ),
]
Head = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--head", min=1, metavar="N", show_default=False, help="The head of a picture, or a page's first; from 1."
    ),
]
Heads = Annotated[
    bool, typer.Option("--heads", help="Measure every head on a corpus, and what the loss is without it.")
]
Source = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--source",
        "-s",
        metavar="FILE",
        show_default=False,
        help="The corpus of --heads or --align: text, such as validation's.",
    ),
]


def attention(
    model: ModelFolder,
    sentence: Sentence = None,
    target: Target = None,
    output: Output = None,
    form: Form = None,
    words: Words = False,
    kind: KindOf = None,
    layer: Layer = None,
    head: Head = None,
    heads: Heads = False,
    align: Align = False,
    source: Source = None,
    gold: Gold = None,
    beam: Beam = None,
    context: ContextOption = None,
    to: To = None,
    tag: TagOption = None,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Show the attention of MODEL while it translates SENTENCE: every weight of every layer and head.

    Reads the model; writes a page for any browser, which needs nothing but itself, or the numbers as JSON, or a
    picture. The weights are those with which the model computed, of encoder, decoder and cross-attention.

    With --heads, reads two files of sentence pairs instead, and prints what each head does on average and how much
    the loss rises when the head is switched off. With --align, reads two such files and prints which source word each
    target word looks at most, 0-0 1-2 for each pair, or with --gold the error rate of each layer's links.

    Example: nmt attention runs/sample "The file could not be opened." --output attention.html
    """
    if context and (heads or align):
        raise typer.BadParameter("--context is for a SENTENCE; files are documents, in which lines follow each other")
    if gold is not None and not align:
        raise typer.BadParameter("--gold needs --align")
    if align:
        without = {"--heads": heads, "--words": words, "--kind": kind, "--head": head, "--beam": beam}
        source, target = files_of_align(without, sentence, source, target, form)
        if layer is not None and gold is not None:
            raise typer.BadParameter("--gold measures every layer; leave --layer out")
        load = partial(_loaded, model, device, threads, asked_tag(to, tag))
        as_json = "json" in {form, Path(output or "").suffix.lower()[1:]}
        align_words(load, source, target, gold, layer, "json" if as_json else "text", output or "-")
        return
    if heads:
        of_sentences = {"--words": words, "--kind": kind, "--layer": layer, "--head": head, "--beam": beam}
        if unfit := [name for name, value in of_sentences.items() if value]:
            raise typer.BadParameter(f"--heads measures every head: {', '.join(unfit)} has no meaning for it")
        if sentence is not None or not source or not target:
            raise typer.BadParameter("--heads takes --source FILE and --target FILE, and no SENTENCE")
        if form not in {None, "json"}:
            raise typer.BadParameter(f"--heads gives a table, or numbers with --format json; {form} is for a SENTENCE")
        load = partial(_loaded, model, device, threads, asked_tag(to, tag))
        _study(load, source, target, form or _form(output), output or "-")
        return
    if sentence is None:
        raise typer.BadParameter("a SENTENCE is missing, in quotes")
    if source is not None:
        raise typer.BadParameter("--source is for --heads; a sentence stands behind MODEL, in quotes")
    if target is not None and beam is not None:
        raise typer.BadParameter("--beam searches for a translation, and --target gives one; leave one out")
    form = form or _form(output)
    if form == "png":
        from nmt.analysis.picture import check_drawable

        check_drawable()
    from nmt.analysis.look import look
    from nmt.analysis.page import Choice

    translator = _loaded(model, device, threads, asked_tag(to, tag))
    found = look(translator, sentence, target, context or (), beam=beam)
    choice = Choice(kind or "cross", _index(layer), _index(head), "words" if words else "subwords")
    _check(found, choice)
    place = output or f"attention.{form}"
    _write(place, _rendered(form, found, choice, model))
    if place != "-":
        show.say(f"wrote {place}")


def _loaded(model: Path, device: str, threads: int | None, tag: str) -> Translator:
    """The model, which puts `tag` before every sentence."""
    from nmt.checkpoint.load import load_translator

    translator = load_translator(model, device, threads)
    translator.tags = replace(translator.tags, default=tag)
    return translator


def _study(load: Callable[[], Translator], source: str, target: str, form: str, output: str) -> None:
    """The table of all heads, or JSON."""
    import json

    from nmt.analysis.heads import as_json, table
    from nmt.analysis.importance import Studied, study
    from nmt.corpus.lines import open_lines, read_lines
    from nmt.score.report import table as aligned
    from nmt.wording import counted

    sides = list(read_lines(source)), list(read_lines(target))
    found: list[Studied] = []

    def shown() -> Iterator[object]:
        for event in study(load(), *sides):
            if isinstance(event, Studied):
                found.append(event)
            else:
                yield event

    show.progress(shown())
    lines = aligned(list(table(found[0])))
    if form == "json":
        lines = json.dumps(as_json(found[0]), ensure_ascii=False, indent=2).split("\n")
    with open_lines(output) as out:
        for line in lines:
            out.write(line)
    result = found[0]
    told = f"{counted(result.pairs, 'pair')}, {counted(result.tokens, 'target token')}"
    show.say(f"{told}, loss {result.loss:.4f} with all heads")


def _form(output: str | None) -> Literal["html", "json", "png"]:
    """What a file's suffix asks for."""
    match Path(output or "").suffix.lower():
        case ".json":
            return "json"
        case ".png":
            return "png"
    return "html"


def _index(number: int | None) -> int | None:
    return None if number is None else number - 1


def _check(found: Look, choice: Choice) -> None:
    layers, heads = found.subwords.weights[choice.kind].shape[:2]
    for name, value, count in (("--layer", choice.layer, layers), ("--head", choice.head, heads)):
        if value is not None and value >= count:
            raise typer.BadParameter(f"{name} {value + 1}: this model's {choice.kind} has {count}")


def _rendered(form: str, found: Look, choice: Choice, model: Path) -> bytes:
    """What is written, in the form asked for."""
    from nmt.analysis.look import as_json
    from nmt.analysis.page import page
    from nmt.checkpoint.report import about

    if form == "png":
        from nmt.analysis.picture import picture

        return picture(found, choice, str(model))
    if form == "json":
        return (as_json(found, choice.units, model=str(model)) + "\n").encode()
    return page(found, choice, {name: value for name, value in about(model)}).encode()


def _write(place: str, data: bytes) -> None:
    from nmt.files import write_whole

    if place == "-":
        sys.stdout.buffer.write(data)
        return
    with write_whole(Path(place)) as stream:
        stream.write(data)
