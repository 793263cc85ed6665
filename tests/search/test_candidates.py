"""The best columns of a wide matrix, against torch's own."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.search.candidates import best_continuations, next_tokens, top


@settings(deadline=None, max_examples=80)
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


@settings(deadline=None, max_examples=80)
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
