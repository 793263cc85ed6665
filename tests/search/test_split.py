"""Long lines in parts: all of the text, in order, each part within the limit."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.search.split import split_long


def spell(texts: Sequence[str]) -> list[list[int]]:
    """One id for each character: what a text becomes is plain to see."""
    return [list(map(ord, text)) for text in texts]


def parts(text: str, limit: int) -> list[str]:
    return ["".join(map(chr, ids)) for ids in split_long(text, limit, spell)]


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


@settings(max_examples=200)
@given(
    st.one_of(st.text(), st.text("ab .!?\u3002 \u0301\u200d")).filter(lambda text: text.strip()),
    st.integers(1, 12),
)
def test_all_of_the_text_is_kept_in_parts_within_the_limit(text: str, limit: int) -> None:
    made = parts(text, limit)
    assert squeezed("".join(made)) == squeezed(text)
    assert all(len(part) <= limit for part in made)


def test_parts_end_at_sentence_ends_where_they_can() -> None:
    assert parts('It is late. "Come in!" she said? Yes.', 24) == ['It is late. "Come in!"', "she said? Yes."]


def test_sentences_of_scripts_without_spaces_end_at_their_own_marks() -> None:
    assert parts("今日は晴れ。「行こう。」明日は雨？", 11) == ["今日は晴れ。", "「行こう。」明日は雨？"]


def test_numbers_and_abbreviations_inside_words_are_no_sentence_ends() -> None:
    assert parts("about 3.14 or e.g. more. Then 2.", 26) == ["about 3.14 or e.g. more.", "Then 2."]


def test_a_long_sentence_is_cut_at_white_space_into_even_parts() -> None:
    made = parts("word " * 100, 120)
    assert all(part.split() == ["word"] * len(part.split()) for part in made)
    assert len(made) == 5
    assert max(map(len, made)) - min(map(len, made)) <= 5


def test_the_other_sentences_of_a_line_with_a_long_one_stay_whole() -> None:
    assert parts("Short one. " + "x" * 30 + ". Another.", 16)[0] == "Short one."
    assert parts("Short one. " + "x" * 30 + ". Another.", 16)[-1] == "Another."


def test_accents_stay_with_their_letters() -> None:
    made = parts("e\u0301" * 20, 7)
    assert all(not part.startswith("\u0301") for part in made)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_character_longer_than_the_limit_is_still_not_lost(limit: int) -> None:
    def in_bytes(texts: Sequence[str]) -> list[list[int]]:
        return [list(text.encode()) for text in texts]

    made = split_long("🎉🎉", limit, in_bytes)
    assert bytes(b for part in made for b in part).decode() == "🎉🎉"
    assert all(len(part) <= limit for part in made)


def test_a_very_long_line_is_split_soon() -> None:
    assert len(parts("dem " * 50_000, 1000)) == pytest.approx(200, abs=1)
