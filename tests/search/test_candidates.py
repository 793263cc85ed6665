"""The best columns of a wide matrix, against torch's own."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.search.candidates import next_tokens, top


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
