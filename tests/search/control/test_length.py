"""Least and most tokens of a translation."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from search.models import sentences

from nmt.errors import NmtError
from nmt.search.control.config import ControlConfig
from nmt.search.control.length import bounds
from nmt.search.control.request import Request
from nmt.search.translate import Translator

LINES = sentences(12, 10, seed=6)


def sizes(ours: Translator, **settings: object) -> list[tuple[int, int]]:
    """Tokens of source and translation of every line, for every hypothesis."""
    found = ours.stream(LINES, n_best=ours.settings.beam if settings.get("beam") is None else 1, **settings)
    return [(len(t.source_tokens), len(c.tokens)) for t in found for c in t.alternatives]


@pytest.mark.parametrize("beam", [1, None])
def test_no_translation_is_shorter_or_longer_than_asked(random_translator: Translator, beam: int | None) -> None:
    assert min(target for _, target in sizes(random_translator, beam=beam)) < 7
    assert all(target >= 7 for _, target in sizes(random_translator, beam=beam, min_length=7))
    assert all(target <= 3 for _, target in sizes(random_translator, beam=beam, max_length=3))
    assert {target for _, target in sizes(random_translator, beam=beam, min_length=5, max_length=5)} == {5}
    for source, target in sizes(random_translator, beam=beam, min_length_ratio=0.75, max_length_ratio=1.1):
        assert 0.75 * source <= target <= max(1.1 * source, 1)


@pytest.mark.parametrize(
    "settings", [{"min_length": 5}, {"max_length": 5}, {"min_length": 5, "max_length": 5}, {"max_length": 1}]
)
def test_lists_stay_full_and_sorted_and_what_was_cut_is_told(
    random_translator: Translator, settings: dict[str, Any]
) -> None:
    """What the limit ended stands among the others by its score."""
    found = list(random_translator.stream(["bal", *LINES], n_best=4, **settings))
    for t in found:
        assert len({c.tokens for c in t.alternatives}) == 4
        assert [c.score for c in t.alternatives] == sorted((c.score for c in t.alternatives), reverse=True)
        if not all(c.finished for c in t.alternatives):
            assert max(len(c.tokens) for c in t.alternatives if not c.finished) >= min(settings.values())
    assert {c.finished for t in found for c in t.alternatives} == {True, False}


def test_a_minimum_goes_beyond_the_usual_limit(random_translator: Translator) -> None:
    assert {target for _, target in sizes(random_translator, beam=1, min_length=40, max_extra_tokens=0)} == {40}


def test_neutral_values_change_nothing(random_translator: Translator) -> None:
    neutral = {"min_length": 0, "min_length_ratio": 0.0, "max_length": 999, "max_length_ratio": 999.0}
    assert random_translator.translate(LINES, **neutral) == random_translator.translate(LINES)


def test_each_line_may_have_its_own(random_translator: Translator) -> None:
    mixed = [Request(line, settings={"min_length": 9} if i % 3 == 0 else {}) for i, line in enumerate(LINES)]
    free, long = random_translator.translate(LINES), random_translator.translate(LINES, min_length=9)
    assert random_translator.translate(mixed) == [(free if i % 3 else long)[i] for i in range(len(LINES))]


@pytest.mark.parametrize(
    "settings",
    [
        {"min_length": 5, "max_length": 4},
        {"min_length_ratio": 2.0, "max_length_ratio": 1.0},
        {"max_length": 0},
        {"min_length": -1},
    ],
)
def test_contradictions_are_refused_at_once(random_translator: Translator, settings: dict[str, float]) -> None:
    with pytest.raises(NmtError, match="length"):
        random_translator.stream(LINES, **settings)


def test_a_line_that_cannot_meet_both_is_named(random_translator: Translator) -> None:
    (translation,) = random_translator.stream(["bal"], min_length=30, max_length_ratio=2.0)
    assert len(translation.best.tokens) <= 30
    assert "the maximum holds" in translation.cautions[0]


@pytest.mark.parametrize("most", [{"max_length": 3}, {"max_length_ratio": 1.5}])
@pytest.mark.parametrize("asked", [{"require": ("gom ban bel", "kor")}, {"prefix": "gom ban bel kor dem"}])
def test_no_phrase_and_no_prefix_goes_beyond_a_maximum_and_the_line_is_named(
    random_translator: Translator, most: dict[str, float], asked: dict[str, Any]
) -> None:
    (found,) = random_translator.stream([Request("bal kor", **asked)], n_best=2, **most)
    assert all(len(c.tokens) <= 3 for c in found.alternatives)
    assert found.cautions[0].startswith("line 1: ")
    (free,) = random_translator.stream([Request("bal kor", **asked)], max_extra_tokens=0)
    assert not free.cautions and len(free.best.tokens) > 3, "without a maximum there is room for both"


@given(tokens=st.integers(1, 500), tenths=st.integers(1, 50))
def test_ratios_are_exact(tokens: int, tenths: int) -> None:
    settings = ControlConfig(min_length_ratio=tenths / 10, max_length_ratio=tenths / 10, max_extra_tokens=10**6)
    least, most = bounds(tokens, settings)
    assert least == -(-tokens * tenths // 10)
    assert most == max(tokens * tenths // 10, 1)
