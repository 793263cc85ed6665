"""Attention in loops: what torch's products give, for any lengths, heads and threads, forwards and backwards."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from nmt.model.kernels import team
from nmt.model.kernels.attention import attention
from nmt.model.vectors import LANES

pytestmark = pytest.mark.skipif(not team.available(), reason="torch has no threads here that others may use")
lengths = st.lists(st.tuples(st.integers(1, 37), st.integers(1, 37)), min_size=1, max_size=5)


def starts(lengths: Sequence[tuple[int, int]]) -> Tensor:
    return torch.tensor([(0, 0), *lengths]).cumsum(0).T.contiguous()


def plainly(q_ND: Tensor, k_MD: Tensor, v_MD: Tensor, starts_2B: Tensor, heads: int, causal: bool) -> Tensor:
    """The same sentence by sentence, in float64."""
    results = []
    for (row, key), (row_end, key_end) in zip(starts_2B.T[:-1].tolist(), starts_2B.T[1:].tolist(), strict=True):
        parts = q_ND[row:row_end], k_MD[key:key_end], v_MD[key:key_end]
        q_HQE, k_HKE, v_HKE = (part.double().unflatten(1, (heads, -1)).transpose(0, 1) for part in parts)
        scores_HQK = q_HQE @ k_HKE.mT / q_HQE.size(2) ** 0.5
        if causal:
            scores_HQK = scores_HQK.masked_fill(torch.ones(scores_HQK.shape[1:]).triu(1).bool(), -torch.inf)
        results.append((scores_HQK.softmax(-1) @ v_HKE).transpose(0, 1).flatten(1))
    return torch.cat(results)


def drawn(rows: int, columns: int, dtype: torch.dtype, size: float = 1.0) -> Tensor:
    return (size * torch.randn(rows, columns)).to(dtype).requires_grad_()


@given(lengths, st.integers(1, 3), st.booleans(), st.sampled_from([0.1, 1.0, 5.0]), st.integers(0, 2**31))
@settings(max_examples=40)
def test_self_attention_equals_torchs_products(
    lengths: list[tuple[int, int]], heads: int, causal: bool, size: float, seed: int
) -> None:
    torch.manual_seed(seed)
    starts_2B, width = starts([(own, own) for own, _ in lengths]), heads * LANES
    count = int(starts_2B[0, -1])
    x_NC = drawn(count + 3, 3 * width, torch.float32, size)
    y_ND = attention(x_NC, None, starts_2B, heads, causal)
    expected_ND = plainly(*x_NC.split(width, 1), starts_2B, heads, causal)
    assert_close(y_ND[:count].double(), expected_ND, rtol=1e-4, atol=1e-4)
    assert not y_ND[count:].any()
    d_ND = torch.randn_like(y_ND)
    (own,) = torch.autograd.grad(y_ND, x_NC, d_ND)
    (expected,) = torch.autograd.grad(expected_ND, x_NC, d_ND[:count].double())
    assert_close(own, expected, rtol=1e-3, atol=1e-3 * size)


@given(lengths, st.integers(1, 2), st.integers(0, 2**31))
@settings(max_examples=40)
def test_attention_to_others_equals_torchs_products(lengths: list[tuple[int, int]], heads: int, seed: int) -> None:
    torch.manual_seed(seed)
    starts_2B, width = starts(lengths), 2 * heads * LANES
    rows, keys = starts_2B[:, -1].tolist()
    q_NC, kv_MC = drawn(rows + 1, width, torch.float32), drawn(keys + 2, 2 * width, torch.float32)
    y_ND = attention(q_NC, kv_MC, starts_2B, heads, False)
    expected_ND = plainly(q_NC, *kv_MC.split(width, 1), starts_2B, heads, False)
    assert_close(y_ND[:rows].double(), expected_ND, rtol=1e-4, atol=1e-4)
    d_ND = torch.randn_like(y_ND)
    own = torch.autograd.grad(y_ND, (q_NC, kv_MC), d_ND)
    expected = torch.autograd.grad(expected_ND, (q_NC, kv_MC), d_ND[:rows].double())
    assert_close(own, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("causal", [True, False])
def test_bfloat16_is_rounded_only_when_it_is_written(causal: bool) -> None:
    torch.manual_seed(1)
    lengths = starts([(17, 17), (5, 5), (40, 40)])
    x_NC = drawn(62, 12 * LANES, torch.bfloat16)
    exact_NC = x_NC.detach().float().requires_grad_()
    y_ND, exact_ND = attention(x_NC, None, lengths, 2, causal), attention(exact_NC, None, lengths, 2, causal)
    assert torch.equal(y_ND, exact_ND.bfloat16())
    d_ND = torch.randn_like(y_ND)
    y_ND.backward(d_ND)
    exact_ND.backward(d_ND.float())
    assert torch.equal(x_NC.grad, exact_NC.grad.bfloat16())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_number_of_threads_changes_nothing(dtype: torch.dtype, threads: None) -> None:
    torch.manual_seed(2)
    lengths = starts([(own, own) for own in (9, 33, 1, 16, 12)])
    x_NC = drawn(71, 6 * LANES, dtype)
    outcomes = []
    for number in (1, 2, 3, 7):
        torch.set_num_threads(number)
        y_ND = attention(x_NC, None, lengths, 1, True)
        outcomes.append((y_ND, *torch.autograd.grad(y_ND, x_NC, torch.ones_like(y_ND))))
    for y_ND, d_NC in outcomes[1:]:
        assert torch.equal(y_ND, outcomes[0][0]) and torch.equal(d_NC, outcomes[0][1])
