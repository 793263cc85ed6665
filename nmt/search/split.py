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
    parts = []
    for group in _pack(_SENTENCE.findall(text), limit, encode, even=False):
        parts.extend(_whole(group, limit, encode) or _at_spaces(group, limit, encode))
    return parts


def _at_spaces(text: str, limit: int, encode: Encode) -> list[list[int]]:
    parts = []
    for group in _pack(_WORD.findall(text), limit, encode, even=True):
        parts.extend(_whole(group, limit, encode) or _anywhere(group, limit, encode))
    return parts


def _anywhere(text: str, limit: int, encode: Encode) -> list[list[int]]:
    (ids,) = encode([text])
    if len(text) < 2:  # one character of more bytes than the limit
        return [ids[i : i + limit] for i in range(0, len(ids), limit)]
    count = min(max(math.ceil(len(ids) / limit), 2), len(text))
    cuts = sorted({_before_character(text, len(text) * i // count) for i in range(1, count)} | {0, len(text)})
    pieces = [text[i:j] for i, j in pairwise(cuts)]
    if len(pieces) == 1:  # one letter under a heap of accents: nowhere is a good place
        pieces = [text[: len(text) // 2], text[len(text) // 2 :]]
    parts = []
    for piece in pieces:
        parts.extend(_whole(piece, limit, encode) or _anywhere(piece, limit, encode))
    return parts


def _before_character(text: str, place: int) -> int:
    """`place`, or the next one after it that parts no letter from its accents and joiners."""
    while place < len(text) and (
        unicodedata.category(text[place])[0] == "M" or "\u200d" in text[place - 1 : place + 1]
    ):
        place += 1
    return place


def _whole(text: str, limit: int, encode: Encode) -> list[list[int]]:
    """`text` as one part, or no part when it is too long."""
    (ids,) = encode([text])
    return [ids] if len(ids) <= limit else []


def _pack(units: Sequence[str], limit: int, encode: Encode, *, even: bool) -> list[str]:
    """Neighbouring units joined while they fit `limit` ids; `even` fills all groups alike instead of the first full."""
    sizes = [len(ids) for ids in encode(units)]
    goal = limit
    if even:
        goal = math.ceil(sum(sizes) / max(math.ceil(sum(sizes) / limit), 1))
    groups: list[list[str]] = []
    filled = 0
    for unit, size in zip(units, sizes, strict=True):
        if not groups or filled + size > goal:
            groups.append([])
            filled = 0
        groups[-1].append(unit)
        filled += size
    return [text for group in groups if (text := "".join(group).strip())]
