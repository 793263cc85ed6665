"""Encode and decode whole files or streams, line for line, telling what happens as events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from nmt.corpus.clean import Cleaner
from nmt.corpus.lines import is_blank, keep_apart, one_line, open_lines, read_lines
from nmt.errors import DataError
from nmt.events import Caution, Event, Notice, Progress
from nmt.subwords.vocabulary import Vocabulary
from nmt.wording import bad_bytes, counted


def encode_file(
    vocabulary: Vocabulary,
    cleaner: Cleaner,
    source: Path | str,
    output: Path | str,
    *,
    ids: bool = False,
    on_bad_bytes: str = "error",
) -> Iterator[Event]:
    """Clean raw text and write its pieces, or their numbers, with spaces between them. A blank line gives an empty one.

    "-" is stdin or stdout. A file is read through before anything is written, so that invalid UTF-8 leaves no output.
    Raises DataError, OutputError.
    """
    tally: Counter[str] = Counter()

    def encode(line: str, number: int) -> str:
        text = "" if is_blank(line) else cleaner.clean(line)
        numbers = vocabulary.encode(text)
        tally["pieces"] += len(numbers)
        tally["unknown"] += numbers.count(vocabulary.unk)
        return " ".join(map(str, numbers) if ids else vocabulary.pieces(text))

    yield from _each_line(encode, source, output, on_bad_bytes, tally, "encode")
    if tally["unknown"]:
        pieces = counted(tally["pieces"], "piece is", "pieces are")
        yield Caution(f"{tally['unknown']:,} of {pieces} unknown to {vocabulary.path}")


def estimate_file(
    vocabulary: Vocabulary,
    cleaner: Cleaner,
    source: Path | str,
    output: Path | str,
    *,
    order: int,
    on_bad_bytes: str = "error",
) -> Iterator[Event]:
    """Write an n-gram model of the pieces of raw text as an ARPA file; blank lines don't count.

    "-" is stdin or stdout. Raises DataError, also where there is no text, and OutputError.
    """
    from nmt.subwords.ngram import estimate

    keep_apart(source, output)
    tally: Counter[str] = Counter()
    texts = (cleaner.clean(line) for line in read_lines(source, on_bad_bytes, tally) if not is_blank(line))
    sentences = [vocabulary.encode(text) for text in texts]
    if not sentences:
        raise DataError(f"{'stdin' if str(source) == '-' else source}: holds no text", "name a file of sentences")
    yield Notice(f"{counted(len(sentences), 'sentence')}, {counted(sum(map(len, sentences)), 'piece')}")
    pieces = list(vocabulary.names(range(len(vocabulary))))
    with open_lines(output) as out:
        for line in estimate(sentences, pieces, order):
            out.write(line)
    if tally["bad bytes"]:
        yield Caution(bad_bytes(tally["bad bytes"]))


def decode_file(
    vocabulary: Vocabulary,
    cleaner: Cleaner,
    source: Path | str,
    output: Path | str,
    *,
    ids: bool = False,
    on_bad_bytes: str = "error",
) -> Iterator[Event]:
    """Join pieces, or their numbers, into lines of text for readers; the rest is as in `encode_file`.

    Raises DataError also for a number that is not in the vocabulary.
    """
    name = "stdin" if str(source) == "-" else str(source)

    def decode(line: str, number: int) -> str:
        if ids:
            text = vocabulary.decode(_numbers(line, len(vocabulary), f"{name}:{number}"))
        else:
            text = vocabulary.decode_pieces([piece for piece in line.split(" ") if piece])
        return one_line(cleaner.restore(text))

    yield from _each_line(decode, source, output, on_bad_bytes, Counter(), "decode")


def _each_line(
    change: Callable[[str, int], str],
    source: Path | str,
    output: Path | str,
    on_bad_bytes: str,
    tally: Counter[str],
    label: str,
) -> Iterator[Event]:
    keep_apart(source, output)
    total = None
    if str(source) != "-" and Path(source).is_file():
        total = sum(1 for _ in read_lines(source, on_bad_bytes))
    with open_lines(output) as out:
        for number, line in enumerate(read_lines(source, on_bad_bytes, tally), 1):
            out.write(change(line, number))
            if str(output) == "-":
                out.flush()
            if number % 1000 == 0:
                yield Progress(label, number, total, "lines")
    if tally["bad bytes"]:
        yield Caution(bad_bytes(tally["bad bytes"]))


def _numbers(line: str, size: int, place: str) -> list[int]:
    for word in line.split():
        if not (word.isascii() and word.isdecimal() and len(word) < 10 and int(word) < size):
            problem = f"{place}: {word[:40]!r} is not a number from 0 to {size - 1}"
            raise DataError(problem, "leave out --ids where the lines hold pieces")
    return [int(word) for word in line.split()]
