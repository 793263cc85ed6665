"""The best columns of a wide matrix, against torch's own."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.errors import ModelError
from nmt.search.candidates import Given, Passed, best_continuations, log_probabilities, next_tokens, predictions, top


@settings(max_examples=80)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 4),
    columns=st.integers(5, 1500),
    count=st.integers(1, 5),
    impossible=st.booleans(),
)
def test_grouping_finds_the_same_columns(seed: int, rows: int, columns: int, count: int, impossible: bool) -> None:
    x_RV = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))
    if impossible:
        x_RV[:, : columns - 3] = -torch.inf
    values, indices = top(x_RV, count)
    assert torch.equal(values, x_RV.topk(count).values)
    assert torch.equal(x_RV.gather(1, indices), values)
    assert all(len(set(row)) == count for row in indices.tolist())


def test_banned_tokens_are_never_chosen_and_keep_their_share() -> None:
    logits_RV = torch.zeros(2, 10)
    log_probs_RV, best_RN, tokens_RN = next_tokens(logits_RV, 7, [0, 1, 2])
    assert sorted(tokens_RN[0].tolist()) == list(range(3, 10))
    assert torch.allclose(best_RN, torch.tensor(0.1).log())
    assert torch.isneginf(log_probs_RV[:, :3]).all()


@settings(max_examples=80)
@given(
    seed=st.integers(0, 10**6),
    each=st.integers(1, 4),
    columns=st.sampled_from([5, 64, 100, 640, 1000, 1024]),
    count=st.integers(1, 6),
    impossible=st.booleans(),
)
def test_the_best_continuations_are_the_best_of_all_hypotheses(
    seed: int, each: int, columns: int, count: int, impossible: bool
) -> None:
    generator = torch.Generator().manual_seed(seed)
    live_SP, gain_RV = torch.randn(3, each, generator=generator), torch.randn(3 * each, columns, generator=generator)
    if impossible:
        gain_RV[:, : columns - 3] = -torch.inf
        live_SP[:, 1:] = -torch.inf
    total_SM, gain_SM, parent_SM, token_SM = best_continuations(gain_RV, live_SP, count)
    all_SPV = live_SP[:, :, None] + gain_RV.view(3, each, columns)
    count = min(count, each * min(columns, count))
    assert torch.equal(total_SM, all_SPV.flatten(1).topk(count).values)
    places_SM = parent_SM * columns + token_SM
    assert torch.equal(all_SPV.flatten(1).gather(1, places_SM), total_SM)
    assert torch.equal(gain_RV.view(3, -1).gather(1, places_SM), gain_SM)
    assert all(len(set(row)) == count for row in places_SM.tolist())


@settings(max_examples=80)
@given(
    seed=st.integers(0, 10**6),
    each=st.integers(1, 4),
    columns=st.sampled_from([5, 64, 100, 640, 1000]),
    count=st.integers(1, 10),
    spread=st.sampled_from([0.1, 1.0, 30.0]),
    dead=st.booleans(),
)
def test_passing_over_logits_finds_what_log_probabilities_tell(
    seed: int, each: int, columns: int, count: int, spread: float, dead: bool
) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits_RV, banned = torch.randn(3 * each, columns, generator=generator) * spread, [0, 2]
    live_SP = torch.randn(3, each, generator=generator)
    if dead:
        live_SP[:, 1:] = -torch.inf
    expected, found = Given(log_probabilities(logits_RV, banned)), Passed.of(logits_RV, banned)
    best = expected.continuations(live_SP, count), found.continuations(live_SP, count)
    possible = best[0][0] > -torch.inf
    assert torch.equal(best[0][0], best[1][0])
    for theirs, ours in zip(*best, strict=True):
        assert torch.equal(theirs[possible], ours[possible])
    assert torch.equal(expected.gains(3), found.gains(3))
    assert torch.equal(expected.favourites(), found.favourites())


def test_log_probabilities_are_torchs() -> None:
    logits_RV = torch.randn(5, 1000, generator=torch.Generator().manual_seed(2)) * 5
    logits_RV[1, 3:] = -torch.inf
    torch.testing.assert_close(log_probabilities(logits_RV, []), logits_RV.log_softmax(-1), atol=2e-6, rtol=1e-6)


def test_of_equal_continuations_the_first_hypothesis_and_the_last_token_come_first() -> None:
    _, _, parent_SM, token_SM = Passed.of(torch.zeros(2, 7), [6]).continuations(torch.zeros(1, 2), 8)
    assert parent_SM.tolist() == [[0] * 6 + [1] * 2]
    assert token_SM.tolist() == [[5, 4, 3, 2, 1, 0, 5, 4]]


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), size=st.sampled_from([7, 64, 150]), flat=st.booleans())
def test_what_a_neighbour_asks_for_changes_no_order_not_even_of_equals(seed: int, size: int, flat: bool) -> None:
    logits_RV = torch.zeros(6, size) if flat else draw_logits(seed, size)
    live_SP = torch.zeros(2, 3)
    plain, beside = predictions(logits_RV, [0, 2]), predictions(logits_RV, [0, 2], lambda log_probs_RV: log_probs_RV)
    for ours, theirs in zip(plain.continuations(live_SP, 4), beside.continuations(live_SP, 4), strict=True):
        assert torch.equal(ours, theirs)
    assert torch.equal(plain.favourites(), beside.favourites())
    assert torch.equal(plain.gains(3), beside.gains(3))


def draw_logits(seed: int, size: int) -> torch.Tensor:
    """Few values, hence equal ones."""
    return torch.randint(0, 3, (6, size), generator=torch.Generator().manual_seed(seed)).float()


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_predictions_that_are_not_numbers_are_an_error(value: float) -> None:
    logits_RV = torch.zeros(2, 9)
    logits_RV[1, 4] = value
    with pytest.raises(ModelError, match="not numbers"):
        predictions(logits_RV, [0])
