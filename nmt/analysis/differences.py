"""Where a translation and a reference differ, word by word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from nmt.analysis.markup import Markup, join, tag
from nmt.score.languages import UNSPACED, base

_WORDS = re.compile(r"\w+|[^\w\s]", re.UNICODE)
_CHARACTERS = re.compile(r"[0-9A-Za-z]+|\S")


def split(text: str, language: str) -> list[tuple[str, str]]:
    """The words and marks of a line, each with the space before it; single characters where words have no spaces."""
    pattern = _CHARACTERS if base(language) in UNSPACED else _WORDS
    parts, end = [], 0
    for found in pattern.finditer(text):
        parts.append((text[end : found.start()], found[0]))
        end = found.end()
    return parts


def marked(translation: str, reference: str, language: str) -> tuple[Markup, Markup]:
    """Both lines as HTML: words of the translation that the reference lacks, and the other way round, are marked."""
    ours, theirs = split(translation, language), split(reference, language)
    matcher = SequenceMatcher(None, [word for _, word in ours], [word for _, word in theirs], autojunk=False)
    left, right = [], []
    for what, a, b, c, d in matcher.get_opcodes():
        left.append(_run(ours[a:b], "" if what == "equal" else "extra"))
        right.append(_run(theirs[c:d], "" if what == "equal" else "missed"))
    return join(left), join(right)


def nearest(translation: str, references: Sequence[str], language: str) -> str:
    """The reference that shares most with the translation; the first of equals."""
    ours = [word for _, word in split(translation, language)]

    def shared(reference: str) -> float:
        return SequenceMatcher(None, ours, [word for _, word in split(reference, language)], autojunk=False).ratio()

    return max(references, key=shared) if len(references) > 1 else references[0]


def _run(words: Sequence[tuple[str, str]], look: str) -> Markup:
    """Neighbouring words; the space before a marked run stays unmarked."""
    if not words:
        return Markup()
    text = "".join(space + word for space, word in words)
    if not look:
        return join([text])
    return join([words[0][0], tag("mark", text[len(words[0][0]) :], class_=look)])
