"""nmt report: what a run is and does, on one page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from . import show
from .options import Quiet

Runs = Annotated[list[Path], typer.Argument(metavar="RUN...", show_default=False, help="Run folders.")]
Page = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="File to write; - is stdout.")]


def report(runs: Runs, output: Page = "report.html", quiet: Quiet = False) -> None:
    """Show all that is known of a run, or of several side by side, on one page for any browser.

    Reads the folders' recipe, journal, scores and translations, and the test sets' references; writes one HTML file
    which needs nothing but itself: settings, data kept and dropped, learning curves, scores with signatures and by
    length, translations with what differs from the reference.

    Example: nmt report runs/sample --output report.html
    """
    from nmt.analysis.record import read_record
    from nmt.analysis.report import report as page
    from nmt.files import write_text_whole

    text = page([read_record(run) for run in runs])
    if output == "-":
        sys.stdout.write(text)
        return
    write_text_whole(Path(output), text)
    show.say(f"wrote {output}")
