"""nmt report: what a run is and does, on one page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from . import show
from .options import ContextOption, Quiet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nmt.analysis.chosen import Sights
    from nmt.analysis.record import Record

Runs = Annotated[list[Path], typer.Argument(metavar="RUN", show_default=False, help="Run folders.")]
Page = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="File to write; - is stdout.")]
NoAttention = Annotated[
    bool, typer.Option("--no-attention", help="Load no models: without alignment and attention of sentences.")
]
Sentences = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--sentence",
        metavar="TEXT",
        show_default=False,
        help="A sentence to show attention of; may be repeated. Otherwise the best, the median and the worst of a "
        "test set's short lines.",
    ),
]


def report(
    runs: Runs,
    output: Page = "report.html",
    no_attention: NoAttention = False,
    sentence: Sentences = None,
    context: ContextOption = None,
    quiet: Quiet = False,
) -> None:
    """Show all that is known of a run, or of several side by side, on one page for any browser.

    Reads the folders' recipe, journal, scores and translations, the test sets' references, and the model; writes one
    HTML file which needs nothing but itself: settings, data kept and dropped, learning curves, scores with signatures
    and by length, translations with what differs from the reference, alignment and attention of a few sentences.

    Example: nmt report runs/sample --output report.html
    """
    from nmt.analysis.record import read_record
    from nmt.analysis.report import report as page
    from nmt.files import write_text_whole

    if sentence and no_attention:
        raise typer.BadParameter("--sentence shows attention, and --no-attention leaves it out")
    if context and not sentence:
        raise typer.BadParameter("--context needs --sentence; a test set's lines have those before them")
    records = [read_record(run) for run in runs]
    text = page(records, None if no_attention else _seen(records, sentence or (), context or ()))
    if output == "-":
        sys.stdout.write(text)
        return
    write_text_whole(Path(output), text)
    show.say(f"wrote {output}")


def _seen(records: Sequence[Record], asked: Sequence[str], context: Sequence[str]) -> Sights | None:
    """What the models see; torch is loaded only where there are sentences to look into."""
    from nmt.analysis.chosen import choose

    sentences = choose(records, asked, context)
    if not sentences:
        return None
    from nmt.analysis.seen import see

    found = see(records, sentences)
    for text in found.problems.values():
        show.caution(f"no attention: {text}")
    return found
