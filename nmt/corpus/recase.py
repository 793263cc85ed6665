"""Training pairs in capitals and in title case, so that a model learns to translate headlines as it does sentences."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nmt.corpus.filters import digest

UPPER, TITLE = "capitals", "title case"
_DOTTED = str.maketrans({"i": "\u0130", "\u0131": "I"})
_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class Recase:
    """Writes a share of all pairs in capitals and another one in title case, on both sides.

    Which ones is a matter of their own text: the same in every run, whatever stands beside them.
    """

    upper: float = 0.0
    title: float = 0.0

    def form(self, source: str, target: str) -> str:
        """How this pair is to be written: UPPER, TITLE, or as it is (empty)."""
        if not self.upper and not self.title:
            return ""
        place = digest(f"case\n{source}\n{target}") / 2**64
        return UPPER if place < self.upper else TITLE if place < self.upper + self.title else ""


def recased(line: str, form: str, language: str) -> str:
    """`line` in capitals, or with a capital at the start of each word (text between white space)."""
    if form == UPPER:
        return _upper(line, language)
    return _WORD.sub(lambda word: _title(word[0], language), line)


def _title(word: str, language: str) -> str:
    first = _upper(word[0], language)
    return (first if len(first) == 1 else word[0].title()) + word[1:]


def _upper(text: str, language: str) -> str:
    """In capitals; Turkish and Azeri have an i with a dot and one without."""
    if re.split("[-_]", language.lower())[0] in {"tr", "az"}:
        text = text.translate(_DOTTED)
    return text.upper()
