"""Raw text → what subwords see, and back: Unicode normalisation and, where asked for, Moses mode.

The raw path is lossless but for the normal form: joiners (ZWNJ, ZWJ), direction marks, every kind of space and every
control character stay as they are, in training and in use alike. Only NUL, CR and LF become spaces, since no stored
line can hold them. Moses mode is lossy by nature.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Literal, cast

if TYPE_CHECKING:
    from nmt.corpus.moses import Moses

_FORMS = {"nfc": "NFC", "nfkc": "NFKC", "none": ""}
_UNSTORABLE = str.maketrans(dict.fromkeys("\0\r\n", " "))


class Cleaner:
    """One side's cleaning, the same for training and for translation.

    `normalization`: "nfc", "nfkc" or "none". `moses`: Moses mode for this side's language, or None.
    """

    def __init__(self, language: str, normalization: str = "nfc", moses: Moses | None = None) -> None:
        if normalization not in _FORMS:
            raise ValueError(f"normalization = {normalization!r} is not one of {', '.join(_FORMS)}")
        self.language = language
        self.normalization = normalization
        self.moses = moses

    def clean(self, line: str) -> str:
        """A raw line as subwords see it."""
        line = line.translate(_UNSTORABLE) if not line.isprintable() else line
        if form := _FORMS[self.normalization]:
            line = unicodedata.normalize(cast(Literal["NFC", "NFKC"], form), line)
        return self.moses.clean(line) if self.moses else line

    def restore(self, line: str) -> str:
        """What subwords gave, as text for readers."""
        return self.moses.restore(line) if self.moses else line
