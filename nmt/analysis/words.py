"""Subwords as words: which pieces belong together."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

SPACE = "\u2581"  # how a piece says that a space stands before it


def words(pieces: Sequence[str]) -> list[range]:
    """The places of each word's pieces, all pieces in order.

    A word begins at a space; punctuation before and after it counts by itself. Text without spaces falls apart at its
    first and last punctuation only.
    """
    starts = [i for i, piece in enumerate(pieces) if i == 0 or piece.startswith(SPACE)]
    spaced = (range(start, end) for start, end in zip(starts, [*starts, len(pieces)][1:], strict=True))
    return [part for word in spaced for part in _peeled(word, pieces)]


def _peeled(word: range, pieces: Sequence[str]) -> Iterator[range]:
    """A word, and what punctuation stands around it."""
    marks = [is_punctuation(pieces[i]) for i in word]
    if pieces[word[0]] == SPACE and len(marks) > 1:  # a space by itself goes with what follows it
        marks[0] = marks[1]
    if all(marks):
        yield word
        return
    first, last = marks.index(False), len(word) - marks[::-1].index(False)
    yield from (part for part in (word[:first], word[first:last], word[last:]) if part)


def is_punctuation(piece: str) -> bool:
    """Whether the piece is punctuation or symbols and nothing else, a space before them left aside."""
    text = _spelled(piece.removeprefix(SPACE))
    return bool(text) and all(unicodedata.category(c)[0] in "PS" for c in text)


def _spelled(text: str) -> str:
    """A piece as it is, or the byte that it spells, such as <0x2C>, if that is a character by itself."""
    if len(text) != 6 or not (text.startswith("<0x") and text.endswith(">")):
        return text
    byte = int(text[3:5], 16)
    return chr(byte) if byte < 0x80 else ""
