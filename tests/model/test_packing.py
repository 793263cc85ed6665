"""Packing: what is real comes back as it was, and gradients go where the numbers came from."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from nmt.model.packing import PLACES, ROWS, Packing

lengths = st.lists(st.integers(1, 19), min_size=1, max_size=5)


def packing(lengths: list[int], extra: int) -> Packing:
    return Packing(torch.arange(max(lengths) + extra) < torch.tensor(lengths)[:, None])


def numbered(*shape: int) -> Tensor:
    return torch.arange(1.0, 1 + torch.Size(shape).numel(), dtype=torch.float64).view(shape).requires_grad_()


@given(lengths, st.integers(0, 3))
@settings(max_examples=50)
def test_packed_tokens_are_the_real_ones_in_their_order(lengths: list[int], extra: int) -> None:
    rows = packing(lengths, extra)
    x_BTD = numbered(*rows.keep_BT.shape, 3)
    packed_ND = rows.pack(x_BTD)
    real_ND = packed_ND[: sum(lengths)]
    assert torch.equal(real_ND, x_BTD[rows.keep_BT])
    assert len(packed_ND) % ROWS == 0
    padded_BTD = rows.pad(packed_ND)
    assert torch.equal(padded_BTD[rows.keep_BT], real_ND)
    padded_BTD.backward(padded_BTD.detach())
    assert torch.equal(x_BTD.grad, x_BTD * rows.keep_BT[:, :, None])


@given(lengths, st.integers(1, 3), st.integers(1, 3))
@settings(max_examples=50)
def test_parts_and_heads_stand_apart_as_if_cut_by_hand(lengths: list[int], parts: int, heads: int) -> None:
    rows = packing(lengths, 1)
    count = sum(lengths)
    x_ND = numbered(count + -count % ROWS, parts * heads * 2)
    cut = rows.apart(x_ND, parts, heads)
    assert len(cut) == parts and cut[0].size(2) % PLACES == 0
    real_BL = torch.arange(cut[0].size(2)) < torch.tensor(lengths)[:, None]
    for number, x_BHLE in enumerate(cut):
        own_NHE = x_ND.view(-1, parts, heads, 2)[:count, number]
        assert torch.equal(x_BHLE.transpose(1, 2)[real_BL], own_NHE)
        assert torch.equal(rows.together(x_BHLE)[:count], own_NHE.flatten(1))
    sum(((part + 1) * rows.together(x)).sum() for part, x in enumerate(cut)).backward()
    expected_P = torch.arange(1.0, 1 + parts, dtype=torch.float64)
    assert_close(x_ND.grad[:count], expected_P.repeat_interleave(heads * 2).expand(count, -1))
    assert not x_ND.grad[count:].any()
