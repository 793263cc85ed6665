"""Escaping is reversible and leaves sentencepiece nothing it would treat specially."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.subwords.escape import ESCAPE, RESERVED, escape, unescape

TOUCHY = st.text(st.sampled_from([*RESERVED, ESCAPE, *(chr(0x10FF01 + i) for i in range(len(RESERVED) + 1)), "a", " "]))


@settings(max_examples=200)
@given(TOUCHY | st.text(st.characters(exclude_categories=["Cs"])))
def test_unescape_undoes_escape_and_reserved_characters_never_remain(text: str) -> None:
    escaped = escape(text)
    assert unescape(escaped) == text
    assert not set(escaped) & set(RESERVED)


def test_usual_text_is_left_as_it_is() -> None:
    for text in ("", " a  b ", "Straße\t12", "<s>", "\u200d\ufeff\U0001f600"):
        assert escape(text) == text == unescape(text)


@settings(max_examples=200)
@given(TOUCHY)
def test_unescape_takes_any_text(text: str) -> None:
    unescape(text)


def test_half_a_surrogate_pair_becomes_the_replacement_character() -> None:
    assert escape("a\ud800b") == "a\ufffdb"
