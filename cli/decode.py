"""nmt decode: subword pieces → text."""

from __future__ import annotations

from . import show
from .encode import Ids, Side, load_side
from .options import Input, ModelFolder, OnBadBytes, Output, Quiet


def decode(
    model: ModelFolder,
    input_: Input = "-",
    output: Output = "-",
    side: Side = "target",
    ids: Ids = False,
    on_bad_bytes: OnBadBytes = "error",
    quiet: Quiet = False,
) -> None:
    """Turn subword pieces into text: what `nmt encode` wrote, or a model's pieces.

    Reads pieces with spaces between them, one sentence a line, and writes text for readers. Marks such as <s> show
    nothing, unknown pieces show as U+2047, bytes that are no UTF-8 as U+FFFD.

    Example: nmt decode runs/sample < test.pieces > test.de
    """
    from nmt.subwords.files import decode_file

    vocabulary, cleaner = load_side(model, side)
    show.awaits(input_)
    events = decode_file(vocabulary, cleaner, input_, output, ids=ids, on_bad_bytes=on_bad_bytes)
    show.progress(events, results=output)
