"""What a score does not show: leftovers of preprocessing, copied lines, changed numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from nmt.wording import counted

# A tokenised text has spaces before most of its full stops; a line or two may be so by nature.
_SPACED_STOP = re.compile(r"\s[.。,，]\s*$")
_ANY_LINE: list[tuple[str, str, Callable[[str], object]]] = [
    ("the subword mark @@", "join the pieces first", re.compile(r"@@(\s|$)").search),
    ("the subword mark ▁ (U+2581)", "join the pieces first", re.compile("▁").search),
    ("<unk>, <s> or </s>", "these are marks of a vocabulary, not text", re.compile(r"<unk>|</?s>").search),
    ("@-@ of Moses' tokenizer", "detokenise first", re.compile(r"@[-/]@").search),
    (
        "escapes such as &apos; or &quot;",
        "detokenise first",
        re.compile(r"&(apos|quot|amp|lt|gt|bar|#91|#93|#124|#39);").search,
    ),
]


def warnings(hypotheses: Sequence[str], name: str = "the hypothesis") -> list[str]:
    """Sentences for the user about traces of subwords or tokenisation, which make a score incomparable."""
    found = []
    for what, remedy, search in _ANY_LINE:
        count = sum(1 for line in hypotheses if search(line))
        if count:
            found.append(f"{name} holds {what} in {counted(count, 'line')} of {len(hypotheses)}; {remedy}")
    spaced = sum(1 for line in hypotheses if _SPACED_STOP.search(line))
    if spaced * 20 >= max(len(hypotheses), 1):
        found.append(
            f"{name} ends in a spaced full stop in {counted(spaced, 'line')} of {len(hypotheses)}; "
            "it looks tokenised: scores are comparable only on raw text"
        )
    return found


def leftover(line: str) -> str:
    """The first trace of subwords or tokenisation in `line`, or an empty string."""
    return next((what for what, _, search in _ANY_LINE if search(line)), "")


def copied(hypotheses: Sequence[str], sources: Sequence[str]) -> list[int]:
    """Line numbers, from 1, of hypotheses of three or more words that are their source unchanged."""
    pairs = enumerate(zip(hypotheses, sources, strict=True), 1)
    return [n for n, (line, source) in pairs if line.strip() == source.strip() and len(line.split()) > 2]


def changed_numbers(hypotheses: Sequence[str], sources: Sequence[str]) -> list[int]:
    """Line numbers, from 1, of hypotheses whose digits are not those of their source.

    Groups of digits are compared in any order, so 1,000.5 equals 1.000,5.
    """
    pairs = enumerate(zip(hypotheses, sources, strict=True), 1)
    return [n for n, (line, source) in pairs if _digits(line) != _digits(source)]


def source_warnings(hypotheses: Sequence[str], sources: Sequence[str]) -> list[str]:
    """Sentences for the user about hypotheses that do not fit their source lines."""
    found = []
    for numbers, one, many in (
        (copied(hypotheses, sources), "is its source, unchanged", "are their source, unchanged"),
        (
            changed_numbers(hypotheses, sources),
            "holds other numbers than its source",
            "hold other numbers than their source",
        ),
    ):
        if numbers:
            what = one if len(numbers) == 1 else many
            found.append(f"{counted(len(numbers), 'line')} of {len(hypotheses):,} {what}: {_some(numbers)}")
    return found


def _digits(line: str) -> list[str]:
    return sorted(re.findall(r"\d+", line))


def _some(numbers: Iterable[int], most: int = 10) -> str:
    shown = list(numbers)
    return ", ".join(str(n) for n in shown[:most]) + (" …" if len(shown) > most else "")
