"""Moses mode: what mosesdecoder's Perl scripts do to text, and back.

The rules and the lists of abbreviations are sacremoses'; where it differs from the scripts, the scripts win: line ends,
single quotes and French quotes in punctuation, the full stop of a line's last word, what is a letter in Chinese and
Japanese, and the rules of Finnish, Swedish, Catalan and Irish. Three differences are kept, because the scripts do harm
there: Indic vowel killers and dots stay in their words, Korean words keep the spaces between them, and Irish and
Catalan elisions are joined again.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import regex  # type: ignore[import-untyped]  # comes with sacremoses; knows Unicode properties
import sacremoses
from sacremoses.indic import NUKTAS, VIRAMAS

from nmt.corpus.detokenize import detokenize
from nmt.corpus.truecase import Truecaser, capitalize

_INDIC = "".join(sorted({*VIRAMAS, *NUKTAS}))


class Moses:
    """Punctuation, tokens with escapes and case, as the Moses scripts treat them, for one language.

    `language`: a code; its first part counts, so that pt_BR follows the rules of pt. `truecase_model`: a file that
    `Truecaser.save` wrote, or None to leave case alone. Raises ModelError when that file is missing or damaged.
    """

    def __init__(
        self, language: str, punctuation: bool = True, tokenize: bool = True, truecase_model: Path | None = None
    ) -> None:
        self._arguments = (language, punctuation, tokenize, truecase_model)
        code = re.split("[-_]", language.lower())[0]
        self._language = code
        self._punctuation = _punctuation_rules(code) if punctuation else []
        self._tokenizer = _Tokenizer(code) if tokenize else None
        self._truecaser = Truecaser.load(truecase_model) if truecase_model else None

    def __reduce__(self) -> tuple[type[Moses], tuple[str, bool, bool, Path | None]]:
        return Moses, self._arguments

    def clean(self, line: str) -> str:
        """Raw text → normalised punctuation, tokens with spaces between them, true case."""
        line = self.normalize(line)
        line = self.tokenize(line)
        return self._truecaser.apply(line) if self._truecaser else line

    def restore(self, line: str) -> str:
        """Tokens → text for readers: capitals at the starts of sentences, spaces; each escape undone once."""
        if self._truecaser:
            line = capitalize(line)
        return detokenize(line, self._language) if self._tokenizer else line

    def normalize(self, line: str) -> str:
        """The first step of `clean`: plain quotes, dashes and spaces."""
        if not self._punctuation:
            return line
        line += "\n"  # some rules of the script look at the line's end
        for rule, replacement in self._punctuation:
            line = rule.sub(replacement, line)
        return line.removesuffix("\n")

    def tokenize(self, line: str, escape: bool = True, split_hyphens: bool = True) -> str:
        """The second step of `clean`: tokens, hyphens inside words set apart as @-@, special characters escaped."""
        if not self._tokenizer or not line.strip():
            return line
        return self._tokenizer.tokenize(line, aggressive_dash_splits=split_hyphens, return_str=True, escape=escape)


def _punctuation_rules(language: str) -> list[tuple[re.Pattern[str], str]]:
    rules = sacremoses.MosesPunctNormalizer(language, perl_parity=True).substitutions
    if language not in {"en", "cs", "cz", "de", "es", "fr"}:  # the script shifts quotes in all but English and Czech
        rules = [*rules[:-1], *sacremoses.MosesPunctNormalizer.DE_ES_FR_QUOTATION_FOLLOWED_BY_COMMA, rules[-1]]
    return [(re.compile(rule), replacement) for rule, replacement in rules]


class _Tokenizer(sacremoses.MosesTokenizer):  # type: ignore[misc]  # sacremoses has no types
    """sacremoses' tokenizer with the scripts' letters, line ends and languages."""

    def __init__(self, language: str) -> None:
        # Other codes with the same abbreviations: sacremoses would take a second to list the letters of these.
        super().__init__({"zh": "yue", "ja": "mis", "ko": "mis", "cjk": "mis"}.get(language, language))
        letters = rf"\p{{Alphabetic}}\p{{Nd}}{_INDIC}"
        inner = {"fi": ":", "sv": ":", "ca": "·"}.get(language, "")  # stands inside words there, before small letters
        apart = rf"([^{letters}\s.'`,\-{inner}]" + (rf"|{inner}(?!\p{{Ll}})" if inner else "") + ")"
        self.PAD_NOT_ISALNUM: Any = regex.compile(apart), r" \1 "
        self.AGGRESSIVE_HYPHEN_SPLIT: Any = regex.compile(rf"([{letters}])-(?=[{letters}])"), r"\1 @-@ "
        self.NONBREAKING_PREFIXES: Any = frozenset(self.NONBREAKING_PREFIXES)
        self.NUMERIC_ONLY_PREFIXES: Any = frozenset(self.NUMERIC_ONLY_PREFIXES)
        if language in {"ca", "ga"}:  # elisions as in French; the abbreviations are loaded already
            self.lang = "fr"

    def handles_nonbreaking_prefixes(self, text: str) -> str:
        text = super().handles_nonbreaking_prefixes(text)
        return re.sub(r"(\S)\.$", r"\1 .", text)  # the last word is hardly ever an abbreviation

    def isanyalpha(self, text: str) -> bool:
        return regex.search(r"\p{Alphabetic}", text) is not None

    def islower(self, text: str) -> bool:
        return regex.fullmatch(r"\p{Lowercase}*", text) is not None
