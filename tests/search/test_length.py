"""The named penalties, against numbers worked out by hand."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.errors import NmtError
from nmt.search.length import parse_penalty


@pytest.mark.parametrize(("length", "divisor"), [(10, 1.733), (20, 2.354), (40, 3.350)])
def test_the_papers_penalty_has_its_values(length: int, divisor: float) -> None:
    assert -1 / parse_penalty("gnmt:0.6").score(-1.0, length) == pytest.approx(divisor, abs=5e-4)


@pytest.mark.parametrize(
    ("name", "score"),
    [("none", -3.0), ("average:0", -3.0), ("average:1", -0.75), ("average:-0.5", -6.0), ("gnmt:2", -3 / 2.25)],
)
def test_each_form_divides_by_its_own_formula(name: str, score: float) -> None:
    assert parse_penalty(name).score(-3.0, 4) == pytest.approx(score)


def test_a_tensor_is_scored_like_its_numbers() -> None:
    penalty = parse_penalty("gnmt:0.6")
    scores = penalty.score(torch.tensor([-1.0, -2.0]), torch.tensor([3, 9]))
    assert scores.tolist() == pytest.approx([penalty.score(-1.0, 3), penalty.score(-2.0, 9)])


@pytest.mark.parametrize("name", ["0.6", "gnmt", "gnmt:", "average:x", "mean:1", "", "gnmt:1e3", "GNMT:1"])
def test_anything_else_is_refused_with_the_valid_names(name: str) -> None:
    with pytest.raises(NmtError, match=r"gnmt:A, average:A or none"):
        parse_penalty(name)


@pytest.mark.parametrize("name", ["gnmt:10.5", "average:999", "average:-11", "average:100000"])
def test_numbers_beyond_all_use_are_refused(name: str) -> None:
    with pytest.raises(NmtError, match="from -10 to 10"):
        parse_penalty(name)


@pytest.mark.parametrize("form", ["gnmt", "average"])
@pytest.mark.parametrize("exponent", [-10, 10])
def test_scores_of_long_translations_are_numbers_that_still_differ(form: str, exponent: int) -> None:
    penalty = parse_penalty(f"{form}:{exponent}")
    scores = penalty.score(torch.tensor([-2000.0, -2001.0, -2002.0]), 1000)
    assert torch.isfinite(scores).all() and scores.unique().tolist() == scores.flip(0).tolist()


@settings(max_examples=200)
@given(
    st.sampled_from(["gnmt", "average"]),
    st.floats(-3, 3).map(lambda x: round(x, 2)),
    st.floats(-50, 0),
    st.integers(1, 40),
    st.integers(0, 40),
)
def test_no_longer_or_less_probable_end_beats_the_bound(
    form: str, exponent: float, log_probability: float, shortest: int, more: int
) -> None:
    penalty = parse_penalty(f"{form}:{exponent}")
    bound = penalty.best(log_probability, shortest, shortest + more)
    reached = [penalty.score(log_probability, length) for length in range(shortest, shortest + more + 1)]
    assert bound == max(reached)
    assert all(penalty.score(log_probability - 1, length) <= bound for length in range(shortest, shortest + more + 1))
