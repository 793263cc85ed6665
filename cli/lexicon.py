"""nmt lexicon: which target pieces translate which source pieces."""

from __future__ import annotations

from typing import Annotated

import typer

from . import show
from .encode import load_side
from .options import ModelFolder, OnBadBytes, Output, Quiet
from .rescore import Source, Target

Best = Annotated[int, typer.Option("--best", min=1, metavar="K", help="Target pieces kept for each source piece.")]


def lexicon(
    model: ModelFolder,
    source: Source,
    target: Target,
    output: Output = "-",
    best: Best = 100,
    on_bad_bytes: OnBadBytes = "error",
    quiet: Quiet = False,
) -> None:
    """Learn which of MODEL's target pieces translate which source pieces, for nmt translate --shortlist.

    Reads parallel raw text and writes lines of target piece, source piece and probability: IBM model 1.

    Example: nmt lexicon runs/sample --source train.en --target train.de --output lex.s2t
    """
    if source == target == "-":
        raise typer.BadParameter("only one of --source and --target can be stdin")
    from nmt.search.control.lexicon import learn_file

    sides = [load_side(model, side) for side in ("source", "target")]
    show.progress(learn_file(sides[0], sides[1], source, target, output, best=best, on_bad_bytes=on_bad_bytes))
