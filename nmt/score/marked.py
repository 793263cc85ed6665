"""Two texts held side by side: which words the one has and the other lacks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Literal

Mark = Literal["", "-", "+"]
Part = tuple[str, Mark]
"""A piece of text; "-" stands only in the first of two texts, "+" only in the second."""
SIGNS: dict[Mark, tuple[str, str]] = {"": ("", ""), "-": ("[-", "-]"), "+": ("{+", "+}")}

_UNSPACED = "\u2e80-\u9fff\uf900-\ufaff\uff66-\uff9f\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003ffff"
_WORD = re.compile(rf"(?:[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s])\s*|\s+")


def compare(first: str, second: str) -> tuple[list[Part], list[Part]]:
    """Both texts in parts: what they share in order has no mark. The parts of a text joined are the text."""
    a, b = _WORD.findall(first), _WORD.findall(second)
    matcher = SequenceMatcher(None, [w.strip() for w in a], [w.strip() for w in b], autojunk=False)
    left: list[Part] = []
    right: list[Part] = []
    for kind, a_from, a_to, b_from, b_to in matcher.get_opcodes():
        left += _parts("".join(a[a_from:a_to]), "" if kind == "equal" else "-")
        right += _parts("".join(b[b_from:b_to]), "" if kind == "equal" else "+")
    return left, right


def plain(parts: Sequence[Part]) -> str:
    """Marks as characters: ``the [-old-] ship``, ``the {+new+} ship``."""
    return "".join(SIGNS[mark][0] + text + SIGNS[mark][1] for text, mark in parts)


def _parts(text: str, mark: Mark) -> list[Part]:
    """A run of words, the space after it outside of the mark."""
    words = text.rstrip() if mark else text
    found: list[Part] = [(words, mark), (text[len(words) :], "")]
    return [part for part in found if part[0]]
