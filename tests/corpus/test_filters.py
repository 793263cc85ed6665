"""Each rule alone, and the set of digests against a plain set."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.corpus.config import PreprocessConfig
from nmt.corpus.filters import Filters, Seen, digest


@pytest.mark.parametrize(
    ("rules", "source", "target", "reason"),
    [
        ({}, "bal", "kor", ""),
        ({}, "", "kor", "empty"),
        ({}, "bal", "\u200b \u3000\ufeff", "empty"),
        ({"min_words": 0}, "", "", "empty"),
        ({"min_words": 2}, "bal kor", "bal", "too few words"),
        ({"max_words": 2}, "bal kor dem", "bal", "too many words"),
        ({"max_words": 2}, "bal kor", "bal\u3000kor", ""),
        ({"max_characters": 3}, "ball", "kor", "too many characters"),
        ({"max_ratio": 3}, "a" * 21, "b" * 7, ""),
        ({"max_ratio": 3}, "a" * 6, "b" * 21, "ratio"),
        ({"max_ratio": 3}, "a", "b" * 20, ""),
        ({}, "bal", "bal", ""),
        ({"drop_identical": True}, "bal", "bal", "identical"),
    ],
)
def test_a_pair_is_dropped_for_its_reason(rules: dict[str, int], source: str, target: str, reason: str) -> None:
    assert Filters(**rules).reason(source, target) == reason  # type: ignore[arg-type]


def test_the_settings_and_the_rules_have_the_same_defaults() -> None:
    assert PreprocessConfig().filters() == Filters()


@settings(max_examples=200)
@given(st.lists(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 20), max_size=30), max_size=30))
def test_seen_is_a_set(chunks: list[list[int]]) -> None:
    seen, reference = Seen(), set[int]()
    for chunk in chunks:
        expected = []
        for value in chunk:
            expected.append(value in reference)
            reference.add(value)
        assert seen.add(chunk) == expected


def test_seen_stays_fast_and_small_by_merging() -> None:
    seen = Seen()
    for start in range(0, 100_000, 500):
        assert not any(seen.add([digest(str(number)) for number in range(start, start + 500)]))
    assert len(seen._levels) < 12
    assert sum(len(level) for level in seen._levels) == 100_000


def test_digests_tell_texts_apart_and_need_64_bits() -> None:
    digests = {digest(text) for text in ("", "a", "b", "a\nb", "ab\n", "\ud800")}
    assert len(digests) == 6
    assert all(0 <= one < 2**64 for one in digests)
