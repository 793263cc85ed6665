"""nmt lm: an n-gram language model over a model's target pieces."""

from __future__ import annotations

from typing import Annotated

import typer

from . import show
from .encode import load_side
from .options import Input, ModelFolder, OnBadBytes, Output, Quiet

Order = Annotated[int, typer.Option("--order", min=1, max=9, metavar="N", help="The longest n-grams.")]


def lm(
    model: ModelFolder,
    input_: Input = "-",
    output: Output = "-",
    order: Order = 4,
    on_bad_bytes: OnBadBytes = "error",
    quiet: Quiet = False,
) -> None:
    """Estimate an n-gram language model of target text, in the subword pieces of MODEL, for nmt translate --lm.

    Reads raw text in the target language, one sentence a line, and writes an ARPA file: interpolated Kneser-Ney.

    Example: nmt lm runs/sample --input more.de --output more.arpa
    """
    from nmt.subwords.files import estimate_file

    vocabulary, cleaner = load_side(model, "target")
    show.awaits(input_)
    show.progress(estimate_file(vocabulary, cleaner, input_, output, order=order, on_bad_bytes=on_bad_bytes))
