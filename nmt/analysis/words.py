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
    spaced = (range(start, end) for start, end in zip(starts, [*starts[1:], len(pieces)], strict=True))
    return [part for word in spaced for part in _peeled(word, pieces)]


def _peeled(word: range, pieces: Sequence[str]) -> Iterator[range]:
    """A word, and what punctuation stands around it."""
    marks = [is_punctuation(pieces[i]) for i in word]
    if all(marks):
        yield word
        return
    first, last = marks.index(False), len(word) - marks[::-1].index(False)
    yield from (part for part in (word[:first], word[first:last], word[last:]) if part)


def is_punctuation(piece: str) -> bool:
    """Whether the piece is punctuation or symbols and nothing else, a space before them left aside."""
    text = piece.removeprefix(SPACE)
    return not _is_byte(text) and all(unicodedata.category(c)[0] in "PS" for c in text)


def _is_byte(text: str) -> bool:
    """Whether the piece spells a byte of a character that the vocabulary lacks: <0xE2>."""
    return len(text) == 6 and text.startswith("<0x") and text.endswith(">")
