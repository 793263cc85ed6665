"""Moses mode: what mosesdecoder's Perl scripts do to text, and back."""

from __future__ import annotations

from pathlib import Path

import sacremoses

Arguments = tuple[str, bool, bool, Path | None]


class Moses:
    """Punctuation, tokens with escapes and case, as the Moses scripts treat them, for one language.

    `language`: a code; its first part counts, so that pt_BR follows the rules of pt. `truecase_model`: a file that
    `truecase.learn` wrote, or None to leave case alone. Raises ModelError when that file is damaged.
    """

    def __init__(
        self, language: str, punctuation: bool = True, tokenize: bool = True, truecase_model: Path | None = None
    ) -> None:
        self._arguments: Arguments = (language, punctuation, tokenize, truecase_model)
        language = language.replace("_", "-").split("-")[0].lower()
        self._punctuation = sacremoses.MosesPunctNormalizer(language, perl_parity=True) if punctuation else None
        self._tokenizer = sacremoses.MosesTokenizer(language) if tokenize else None
        self._detokenizer = sacremoses.MosesDetokenizer(language) if tokenize else None

    def __reduce__(self) -> tuple[type[Moses], Arguments]:
        return Moses, self._arguments

    def clean(self, line: str) -> str:
        """Raw text → normalised punctuation, tokens with spaces between them, true case."""
        if self._punctuation:
            line = self._punctuation.normalize(line)
        if self._tokenizer:
            line = self._tokenizer.tokenize(line, aggressive_dash_splits=True, return_str=True)
        return line

    def restore(self, line: str) -> str:
        """Tokens → text for readers: capital first letters, spaces and escapes undone, once."""
        return self._detokenizer.detokenize(line.split()) if self._detokenizer else line
