"""Tokens → text for readers, by the rules of Moses' detokenizer: which words lose the space before or after them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import regex  # type: ignore[import-untyped]

# Each escape stands for one character, and &amp; comes last, so that nothing is undone twice.
_ESCAPES = [
    *(("&bar;", "|"), ("&#124;", "|"), ("&lt;", "<"), ("&gt;", ">"), ("&bra;", "["), ("&ket;", "]")),
    *(("&quot;", '"'), ("&apos;", "'"), ("&#91;", "["), ("&#93;", "]"), ("&amp;", "&")),
]
_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\ua4cf\ua840-\ua87f\uac00-\ud7af\uf900-\ufaff\ufe30-\ufe4f\uff65-\uffdc\U00020000-\U0002ffff]"
)
_OPENING = regex.compile(r"[\p{Sc}(\[{¿¡]+")
_CLOSING = re.compile(r"[,.?!:;\\%}\])]+")
_FRENCH_SPACED = frozenset("?!:;\\%")
_CONTRACTION = regex.compile(r"'\p{Alphabetic}")
_ENDS_ALNUM = regex.compile(r"[\p{Alphabetic}\p{Nd}]$")
_ELISION = regex.compile(r"\p{Alphabetic}'$")
_ALPHABETIC = regex.compile(r"\p{Alphabetic}")
_ENDS_ALPHABETIC = regex.compile(r"\p{Alphabetic}$")
_QUOTES = re.compile("['\"„“`]+")


def detokenize(line: str, language: str) -> str:
    """The tokenised `line` as running text of `language`; each escape is undone once."""
    text = f" {line} ".replace(" @-@ ", "-")
    for escape, character in _ESCAPES:
        text = text.replace(escape, character)
    return _Detokenizer(text.split(), language).text()


@dataclass
class _Detokenizer:
    words: list[str]
    language: str
    open_quotes: dict[str, bool] = field(default_factory=dict)

    def text(self) -> str:
        parts: list[str] = []
        joined = True  # whether the next word follows without a space
        for i, word in enumerate(self.words):
            before, after = self._spaces(i, word)
            french = " " if self.language == "fr" and word in _FRENCH_SPACED else ""
            parts += [french or ("" if joined or not before else " "), word]
            joined = not after
        return "".join(parts).strip()

    def _spaces(self, i: int, word: str) -> tuple[bool, bool]:
        """Whether word i may have a space before it, and whether one follows it."""
        previous = self.words[i - 1] if i else ""
        if _CJK.match(word) and self.language != "ko":
            return not (previous and _CJK.match(previous[-1])), True
        if _OPENING.fullmatch(word):
            return True, False
        if _CLOSING.fullmatch(word):
            return False, True
        if self._clings_left(i, word, previous):
            return False, True
        if self._clings_right(i, word):
            return True, False
        return self._quote(word, previous) if _QUOTES.fullmatch(word) else (True, True)

    def _clings_left(self, i: int, word: str, previous: str) -> bool:
        """English 's and 'll; the second half of a Czech decimal number; Czech e - mail, whose dash clings too."""
        if self.language == "en":
            return bool(_CONTRACTION.match(word) and _ENDS_ALNUM.search(previous))
        if self.language != "cs":
            return False
        number = i > 1 and _is_number(self.words[i - 2]) and previous in {".", ","} and _is_number(word)
        return number or self._czech_dash(i) or self._czech_dash(i - 1)

    def _clings_right(self, i: int, word: str) -> bool:
        """French, Italian, Irish and Catalan l' and d' before a letter."""
        following = self.words[i + 1] if i + 1 < len(self.words) else ""
        elides = self.language in {"fr", "it", "ga", "ca"}
        return bool(elides and _ELISION.search(word) and _ALPHABETIC.match(following))

    def _czech_dash(self, i: int) -> bool:
        """Whether word i is a dash inside -li or e-mail; not at a line's end, where the script does not look."""
        if not 1 <= i < len(self.words) - 2 or self.words[i] not in {"-", "–"}:
            return False
        following = self.words[i + 1].lower()
        return bool(_ENDS_ALPHABETIC.search(self.words[i - 1])) and (following == "li" or following.startswith("mail"))

    def _quote(self, word: str, previous: str) -> tuple[bool, bool]:
        """Quotes open and close by turns; Czech ones say which they are."""
        kind = '"' if set(word) <= set("„“”") else word
        is_open = self.open_quotes.get(kind, False)
        if self.language == "cs" and word in {"„", "“"}:
            is_open = word == "“"
        if not is_open and self.language == "en" and word == "'" and previous.endswith("s"):
            self.open_quotes[kind] = is_open
            return False, True  # the Jones' house
        self.open_quotes[kind] = not is_open
        return (False, True) if is_open else (True, False)


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit()
