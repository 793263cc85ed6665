"""nmt decode: subword pieces → text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from .encode import Ids, Side, load_side, tell_bad_bytes
from .options import Input, ModelFolder, OnBadBytes, Output, Quiet

if TYPE_CHECKING:
    from nmt.subwords.vocabulary import Vocabulary


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

    Example: nmt encode runs/sample --side target < test.de | nmt decode runs/sample
    """
    from nmt.corpus.lines import one_line, open_lines, read_lines

    vocabulary, cleaner = load_side(model, side)
    join = _numbers(vocabulary, "stdin" if input_ == "-" else input_) if ids else _pieces(vocabulary)
    tally: Counter[str] = Counter()
    with open_lines(output) as out:
        for number, line in enumerate(read_lines(input_, on_bad_bytes, tally), 1):
            out.write(one_line(cleaner.restore(join(line, number))))
            out.flush()
    tell_bad_bytes(tally)


def _pieces(vocabulary: Vocabulary) -> Callable[[str, int], str]:
    return lambda line, _: vocabulary.decode_pieces([piece for piece in line.split(" ") if piece])


def _numbers(vocabulary: Vocabulary, name: str) -> Callable[[str, int], str]:
    from nmt.errors import DataError

    def join(line: str, number: int) -> str:
        for word in line.split():
            if not (word.isascii() and word.isdecimal() and int(word) < len(vocabulary)):
                place = f"{name}:{number}: {word!r}"
                raise DataError(
                    f"{place} is not a number from 0 to {len(vocabulary) - 1}", "leave out --ids for pieces"
                )
        return vocabulary.decode([int(word) for word in line.split()])

    return join
