"""Phrases in text: where they stand as whole words."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

_UNSPACED = (  # letters of scripts that put no spaces between words: Thai to Myanmar, Khmer, kana, Han
    (0x0E00, 0x109F),
    (0x1780, 0x17FF),
    (0x3040, 0x30FF),
    (0x3400, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)


def places(phrase: str, text: str) -> Iterator[int]:
    """Where `phrase` stands in `text` as whole words, one place after the other."""
    start = 0
    while phrase and (start := text.find(phrase, start)) >= 0:
        end = start + len(phrase)
        if is_whole(text, start, end):
            yield start
            start = end
        else:
            start += 1


def occurrences(phrase: str, text: str) -> int:
    """How often `phrase` stands in `text` as whole words."""
    return sum(1 for _ in places(phrase, text))


def is_whole(text: str, start: int, end: int) -> bool:
    """Whether no word reaches over the edges of ``text[start:end]``."""
    return not is_joined(text, start) and not is_joined(text, end)


def may_follow(piece: str) -> bool:
    """Whether a subword piece can stand after a whole phrase: it begins with a space, a stop, a bracket or a quote."""
    first = piece[:1]
    if first == "\u2581":
        return True
    return (
        first in set(".,;:!?…'\"") or unicodedata.category(first or "a") in {"Pe", "Pf", "Pi", "Ps"} or _unspaced(first)
    )


def is_joined(text: str, place: int) -> bool:
    """Whether the characters before and after `place` belong to one word."""
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if unicodedata.category(after)[0] == "M":  # an accent belongs to its letter
        return True
    return all(_in_word(c) for c in (before, after)) and not any(_unspaced(c) for c in (before, after))


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"


def _unspaced(character: str) -> bool:
    return bool(character) and any(first <= ord(character) <= last for first, last in _UNSPACED)
