"""Differences between two texts, marked."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.score.marked import compare, plain

text = st.text(alphabet="ab c.é我你 ", max_size=30)


@settings(max_examples=100)
@given(text, text)
def test_the_parts_joined_are_the_text_and_the_unmarked_words_are_the_same(first: str, second: str) -> None:
    left, right = compare(first, second)
    assert "".join(piece for piece, _ in left) == first
    assert "".join(piece for piece, _ in right) == second
    shared = [" ".join("".join(piece for piece, mark in side if not mark).split()) for side in (left, right)]
    assert shared[0].replace(" ", "") == shared[1].replace(" ", "")
    assert {mark for _, mark in left} <= {"", "-"} and {mark for _, mark in right} <= {"", "+"}


@pytest.mark.parametrize(
    ("first", "second", "left", "right"),
    [
        ("the old ship", "the new ship", "the [-old-] ship", "the {+new+} ship"),
        ("the ship", "the ship.", "the ship", "the ship{+.+}"),
        ("same", "same", "same", "same"),
        ("", "new words", "", "{+new words+}"),
        ("我买书", "我卖书", "我[-买-]书", "我{+卖+}书"),
    ],
)
def test_marks_stand_around_what_differs(first: str, second: str, left: str, right: str) -> None:
    assert tuple(plain(parts) for parts in compare(first, second)) == (left, right)
