"""The raw path changes nothing but the normal form."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.corpus.clean import Cleaner
from nmt.corpus.config import MosesConfig, TextConfig


@settings(max_examples=300)
@given(st.text())
def test_the_raw_path_is_nfc_and_nothing_else(text: str) -> None:
    cleaner = Cleaner("en")
    spaced = text.replace("\0", " ").replace("\r", " ").replace("\n", " ")
    assert cleaner.clean(text) == unicodedata.normalize("NFC", spaced)
    assert cleaner.clean(cleaner.clean(text)) == cleaner.clean(text)
    assert cleaner.restore(text) == text


@pytest.mark.parametrize(
    "line",
    [
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # a Persian word with ZWNJ inside
        "\u0915\u094d\u200d\u0937",  # a Devanagari ligature held open by ZWJ
        "ab\u200e\u200f\u061ccd",
        "10\u00a0000\u2009kor\u3000dem",
        "  bal\t kor  ",
        "bal\u2028kor\x85dem\x0bban",
        "\U0001f469\u200d\U0001f680 \U0001f1eb\U0001f1ee",
        "▁ <s> <unk> @@ &amp;",
        "ﬁ ① ½ Ａ",
    ],
)
def test_joiners_marks_spaces_and_symbols_stay(line: str) -> None:
    assert Cleaner("fa").clean(line) == line


def test_composed_and_decomposed_text_become_the_same() -> None:
    assert Cleaner("fr").clean("cafe\u0301") == Cleaner("fr").clean("café") == "café"


def test_nfkc_folds_and_none_leaves_alone() -> None:
    assert Cleaner("en", "nfkc").clean("ﬁ Ａ") == "fi A"
    assert Cleaner("en", "none").clean("cafe\u0301") == "cafe\u0301"


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(ValueError, match="nfd"):
        Cleaner("en", "nfd")


def test_the_settings_build_the_cleaner() -> None:
    assert TextConfig().build("en").moses is None
    assert TextConfig(normalization="nfkc").build("en").clean("Ａ") == "A"
    moses = TextConfig(moses=MosesConfig()).build("en")
    assert moses.clean("Bal, kor!") == "Bal , kor !"
    assert moses.restore("Bal , kor !") == "Bal, kor!"
