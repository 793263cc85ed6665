"""Lines that look wrong whatever the score: lost numbers and links, copies, loops, lengths that cannot be right.

A line is compared with its source, or with its reference where no source is given. What the reference does too is no
fault: a number that the reference also writes differently, a refrain that it also repeats. These are hints for readers,
not measurements, so their rules are cautious.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from nmt.corpus.lines import is_blank
from nmt.score.checks import leftover
from nmt.score.languages import guess_unspaced
from nmt.score.texts import Texts
from nmt.wording import counted

_NUMBER = re.compile(r"\d+")
_THOUSANDS = re.compile(r"(?<!\d)\d{1,3}(?:[.,'’\u00a0\u202f]\d{3})+(?!\d)")
_LINK = re.compile(r"(?:https?://|ftp://|www\.)[^\s<>\"'«»„“”()\[\]{}]*[^\s<>\"'«»„“”()\[\]{}.,;:!?…]")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PLACEHOLDER = re.compile(
    r"""\$?\{[\w.:-]*\}                                        # {0} {name} ${name}
    | (?<![\d%])%(?:\(\w+\)|\d+\$)?[-+\#0]*\d*(?:\.\d+)?l?[diouxXeEfgGcsS@](?![^\W\d_])   # %s %1$s %(name)d
    | </?[A-Za-z][\w-]*(?:\s[^<>]*)?/?>                        # <b> </b> <br/>
    | &[A-Za-z][\w.]*;                                         # &brandName;
    | \b__\w+?__\b""",
    re.VERBOSE,
)
_STUTTER = re.compile(r"([^\W\d_]{1,4}?)\1{3,}")
LOOP = ((1, 3), (8, 2))  # (most words of the unit, how often in a row is a loop)
LOOP_CHARACTERS = ((1, 4), (3, 3), (12, 2))
LENGTH_FACTOR, LENGTH_MARGIN = 2.0, 10  # characters
COPIED_SHARE, COPIED_WORDS, COPIED_CHARACTERS = 0.8, 3, 12


@dataclass(frozen=True)
class Line:
    """A translation and what it is held against; `source` is None where only references are known."""

    text: str
    source: str | None
    references: tuple[str, ...]

    @property
    def model(self) -> str:
        """What numbers and links are compared with."""
        return self.references[0] if self.source is None else self.source


@dataclass(frozen=True)
class Finding:
    """A line (from 1) that one of the CHECKS has something to say about."""

    line: int
    check: str
    detail: str


def find(texts: Texts, system: int = 0) -> Iterator[Finding]:
    """What the checks find in the translations of a system, by line."""
    for i, text in enumerate(texts.systems[system]):
        source = None if texts.source is None else texts.source[i]
        references = tuple(r for r in texts.referred(i) if not is_blank(r)) or texts.referred(i)[:1]
        line = Line(text, source, references)
        if is_blank(text):
            if not is_blank(line.model):
                yield Finding(i + 1, "empty", _short(line.model))
            continue
        for name, check in CHECKS.items():
            detail = check(line)
            if detail:
                yield Finding(i + 1, name, detail)


def summary(findings: Sequence[Finding]) -> dict[str, int]:
    """How many lines each check named, most first."""
    return dict(Counter(finding.check for finding in findings).most_common())


def numbers(line: Line) -> str:
    """Numbers that got lost or came in; 1,000.5 is 1.000,5, and a number that the reference writes so is no fault."""
    return _changed(line, _numbers)


def links(line: Line) -> str:
    """Links and e-mail addresses."""
    return _changed(line, lambda text: Counter(_LINK.findall(text) + _MAIL.findall(text)))


def placeholders(line: Line) -> str:
    """What a program fills in later or takes for a mark: {0}, %s, %1$s, ${name}, <b>, &name;."""
    return _changed(line, lambda text: Counter(m[0] for m in _PLACEHOLDER.finditer(text)))


def copied(line: Line) -> str:
    """Most words are the source's, though the reference's are not."""
    if line.source is None:
        return ""
    share = _shared(line.text, line.source)
    if share < COPIED_SHARE or any(_shared(reference, line.source) >= COPIED_SHARE for reference in line.references):
        return ""
    return f"{share:.0%} of the words are the source's"


def loops(line: Line) -> str:
    """The same words again and again in a row, or the same letters in a word."""
    found = _loop(line.text) or _stutter(line.text)
    if not found or any(_loop(other) or _stutter(other) for other in (*line.references, line.source or "")):
        return ""
    unit, times = found
    return f"{times} times {unit!r}"


def length(line: Line) -> str:
    """Longer or shorter by a factor of two than every reference, in characters."""
    own, others = _size(line.text), [_size(reference) for reference in line.references]
    longest, shortest = max(others), min(others)
    if own > LENGTH_FACTOR * longest and own - longest > LENGTH_MARGIN:
        return f"too long: {counted(own, 'character')}, the reference has {longest}"
    if LENGTH_FACTOR * own < shortest and shortest - own > LENGTH_MARGIN:
        return f"too short: {counted(own, 'character')}, the reference has {shortest}"
    return ""


def marks(line: Line) -> str:
    """Leftovers of subwords or of Moses' tokenizer, and U+FFFD."""
    if any(leftover(reference) for reference in line.references):
        return ""
    return leftover(line.text) or ("U+FFFD: bytes that are no text" if "\ufffd" in line.text else "")


CHECKS: dict[str, Callable[[Line], str]] = {
    "number": numbers,
    "link": links,
    "placeholder": placeholders,
    "copied": copied,
    "loop": loops,
    "length": length,
    "mark": marks,
}
"""Name of a check → a function that tells what is wrong with a line, or "". A new check is a line here."""


def _changed(line: Line, parts: Callable[[str], Counter[str]]) -> str:
    own, model = parts(line.text), parts(line.model)
    if own == model or any(own == parts(reference) for reference in line.references):
        return ""
    lost, new = sorted((model - own).elements()), sorted((own - model).elements())
    told = [f"{word} {', '.join(items)}" for word, items in (("lacks", lost), ("has", new)) if items]
    return "; ".join(told)


def _numbers(text: str) -> Counter[str]:
    plain = unicodedata.normalize("NFKC", _LINK.sub(" ", _THOUSANDS.sub(lambda m: re.sub(r"\D", "", m[0]), text)))
    return Counter("".join(str(unicodedata.digit(c)) for c in number) for number in _NUMBER.findall(plain))


def _words(text: str) -> list[str]:
    return [word.casefold() for word in re.findall(r"\w+", text)]


def _shared(text: str, source: str) -> float:
    """The share of the words of `text` that the source holds; 0 when they are too few to tell."""
    if text.strip() == source.strip() and _size(text) >= COPIED_CHARACTERS:
        return 1.0
    words = [word for word in _words(text) if word.isalpha() and len(word) > 1]
    known = set(_words(source))
    return sum(word in known for word in words) / len(words) if len(words) >= COPIED_WORDS else 0.0


def _loop(text: str) -> tuple[str, int] | None:
    """The shortest unit that is repeated in a row, and how often; None where nothing is."""
    unspaced = guess_unspaced([text]) != ""
    items = [c for c in text if c.isalpha()] if unspaced else _words(text)
    least = LOOP_CHARACTERS if unspaced else LOOP
    for size in range(1, min(least[-1][0], len(items) // 2) + 1):
        enough = next(times for most, times in least if size <= most)
        start = run = 0
        for i in range(size, len(items)):
            run = run + 1 if items[i] == items[i - size] else 0
            if run == 0:
                start = i - size + 1
            if run >= size * (enough - 1):
                while i + 1 < len(items) and items[i + 1] == items[i + 1 - size]:
                    i, run = i + 1, run + 1
                return ("" if unspaced else " ").join(items[start : start + size]), run // size + 1
    return None


def _stutter(text: str) -> tuple[str, int] | None:
    """Up to four letters that stand four times or more in a row in a word; in CJK text `_loop` knows better."""
    match = None if guess_unspaced([text]) else _STUTTER.search(text)
    return (match[1], len(match[0]) // len(match[1])) if match else None


def _size(text: str) -> int:
    return len("".join(text.split()))


def _short(text: str, most: int = 40) -> str:
    return text if len(text) <= most else text[: most - 2] + " …"
