"""Lines too long for the model, cut where it hurts least: at sentence ends, else at white space, else anywhere."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from itertools import pairwise

# A sentence ends at its mark and closing quotes; scripts that write spaces must have one after it.
_SENTENCE = re.compile(r"""(?s).+?(?:[.!?…؟۔।॥]["'”’»›)\]]*\s+|[。！？｡]["'”’」』）]*\s*|\Z)""")
_WORD = re.compile(r"\S+\s*")

Encode = Callable[[Sequence[str]], list[list[int]]]


def split_long(text: str, limit: int, encode: Encode) -> list[list[int]]:
    """`text` in parts of at most `limit` ids each, in order; nothing is left out but space between parts.

    `encode` turns texts into ids. Parts end at sentence ends where that is enough; where a single sentence is too
    long, it is cut at white space into parts of about equal length, and a single word too long between characters.
    """
    return _at_sentences(text.strip() or text, limit, encode)


def _at_sentences(text: str, limit: int, encode: Encode) -> list[list[int]]:
    units = _SENTENCE.findall(text)
    return [part for group in _pack(units, limit, encode) for part in _fitting(group, limit, encode, _at_spaces)]


def _at_spaces(text: str, limit: int, encode: Encode) -> list[list[int]]:
    units = _WORD.findall(text)
    return [
        part for group in _pack(units, limit, encode, even=True) for part in _fitting(group, limit, encode, _anywhere)
    ]


def _fitting(units: Sequence[str], limit: int, encode: Encode, cut: Callable[..., list[list[int]]]) -> list[list[int]]:
    """The units as one part if they fit together, else in halves; a unit too long by itself is `cut`."""
    text = "".join(units).strip()
    if not text:
        return []
    (ids,) = encode([text])
    if len(ids) <= limit:
        return [ids]
    if len(units) == 1:
        return cut(text, limit, encode)
    half = len(units) // 2
    return _fitting(units[:half], limit, encode, cut) + _fitting(units[half:], limit, encode, cut)


def _anywhere(text: str, limit: int, encode: Encode) -> list[list[int]]:
    (ids,) = encode([text])
    if len(text) < 2:  # one character of more bytes than the limit
        return [ids[i : i + limit] for i in range(0, len(ids), limit)]
    count = min(max(math.ceil(len(ids) / limit), 2), len(text))
    cuts = sorted({_before_character(text, len(text) * i // count) for i in range(1, count)} | {0, len(text)})
    pieces = [text[i:j] for i, j in pairwise(cuts)]
    if len(pieces) == 1:  # one letter under a heap of accents: nowhere is a good place
        pieces = [text[: len(text) // 2], text[len(text) // 2 :]]
    return [part for piece in pieces for part in _fitting([piece], limit, encode, _anywhere)]


def _before_character(text: str, place: int) -> int:
    """`place`, or the next one after it that parts no letter from its accents and joiners."""
    while place < len(text) and (
        unicodedata.category(text[place])[0] == "M" or "\u200d" in text[place - 1 : place + 1]
    ):
        place += 1
    return place


def _pack(units: Sequence[str], limit: int, encode: Encode, *, even: bool = False) -> list[list[str]]:
    """Neighbouring units while they seem to fit `limit` ids together; `even` fills all groups about alike."""
    sizes = [len(ids) for ids in encode([unit.strip() for unit in units])]
    (whole,) = map(len, encode(["".join(units)]))
    scale = whole / max(sum(sizes), 1)  # ids of a unit by itself may be fewer or more than in its place
    goal = math.ceil(whole / max(math.ceil(whole / limit), 1)) if even else limit
    groups: list[list[str]] = []
    filled = 0.0
    for unit, size in zip(units, sizes, strict=True):
        if not groups or filled + size * scale > goal:
            groups.append([])
            filled = 0.0
        groups[-1].append(unit)
        filled += size * scale
    return groups
