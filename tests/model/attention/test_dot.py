"""Attention against torch's own, and the fast ways against the written-out one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from model.cases import ATTENTIONS, name
from torch import nn
from torch.testing import assert_close

from nmt.model import initial
from nmt.model.attention.core import MASKED, Attention, hide
from nmt.model.attention.dot import SHORT, DotAttention
from nmt.model.position.core import Position

WIDTH = 16
both_precisions = pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)], ids=str
)


def drawn(attention: Attention, dtype: torch.dtype = torch.float64) -> Attention:
    initial.initialize(attention, torch.Generator().manual_seed(2))
    return attention.to(dtype).eval()


def random(*shape: int, seed: int = 3, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def torchs(ours: Attention, dtype: torch.dtype) -> nn.MultiheadAttention:
    """nn.MultiheadAttention with the weights of `ours`."""
    theirs = nn.MultiheadAttention(WIDTH, ours.heads, bias=False, batch_first=True, dtype=dtype)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
        theirs.out_proj.weight.copy_(ours.output.weight)
    return theirs.eval()


@both_precisions
@pytest.mark.parametrize("heads", [1, 2, 4])
def test_cross_attention_equals_torchs_with_the_same_weights(dtype: torch.dtype, tolerance: float, heads: int) -> None:
    ours = drawn(DotAttention(WIDTH, heads, WIDTH // heads, WIDTH // heads, Position()), dtype)
    x_BQD, memory_BKD = random(3, 5, WIDTH, dtype=dtype), random(3, 7, WIDTH, seed=4, dtype=dtype)
    keep_BK = torch.tensor([[True] * 7, [True] * 4 + [False] * 3, [True] + [False] * 6])
    expected, _ = torchs(ours, dtype)(x_BQD, memory_BKD, memory_BKD, key_padding_mask=~keep_BK, need_weights=False)
    got = ours(x_BQD, memory_BKD, hide(keep_BK[:, None, None], dtype))
    assert_close(got, expected, rtol=tolerance, atol=tolerance)


@both_precisions
def test_causal_self_attention_equals_torchs_with_the_same_weights(dtype: torch.dtype, tolerance: float) -> None:
    ours = drawn(DotAttention(WIDTH, 4, 4, 4, Position()), dtype)
    x_BTD = random(3, 6, WIDTH, dtype=dtype)
    keep_TT = torch.ones(6, 6, dtype=torch.bool).tril()
    expected, _ = torchs(ours, dtype)(x_BTD, x_BTD, x_BTD, attn_mask=~keep_TT, need_weights=False)
    got = ours(x_BTD, x_BTD, hide(keep_TT[None, None], dtype))
    assert_close(got, expected, rtol=tolerance, atol=tolerance)


def test_weights_equal_torchs() -> None:
    ours = drawn(DotAttention(WIDTH, 2, 8, 8, Position()))
    x_BQD, memory_BKD = random(2, 3, WIDTH), random(2, 4, WIDTH, seed=4)
    _, expected = torchs(ours, torch.float64)(x_BQD, memory_BKD, memory_BKD, average_attn_weights=False)
    q_BHQE, (k_BHKE, _) = ours.split(ours.query(x_BQD)), ours.remember(memory_BKD)
    assert_close(ours.weights(q_BHQE, k_BHKE, None), expected)


@pytest.mark.parametrize("config", ATTENTIONS, ids=name)
@pytest.mark.parametrize("keys", [1, 5, SHORT, SHORT + 1, 40])
@pytest.mark.parametrize("learning", [True, False], ids=["learning", "not learning"])
def test_the_fast_way_equals_the_written_out_one(config: Any, keys: int, learning: bool) -> None:
    attention = drawn(config.build(WIDTH, Position(), 0.0)).train(learning)
    q_BHQE, k_BHKE, v_BHKE = random(2, 2, 3, 8), random(2, 2, keys, 8, seed=4), random(2, 2, keys, 8, seed=5)
    keep_B1QK = random(2, 1, 3, keys, seed=6) > 0
    keep_B1QK[..., 0] = True
    for bias in (None, hide(keep_B1QK, torch.float64), random(2, 2, 3, keys, seed=7)):
        with torch.set_grad_enabled(learning):
            expected = attention.weights(q_BHQE, k_BHKE, bias) @ v_BHKE
            assert_close(attention.mix(q_BHQE, k_BHKE, v_BHKE, bias), expected)
            assert_close(Attention.mix(attention, q_BHQE, k_BHKE, v_BHKE, bias), expected)


@pytest.mark.parametrize("keys", [5, 40])
def test_the_fused_kernel_has_the_gradients_of_the_written_out_products(keys: int) -> None:
    attention = drawn(DotAttention(WIDTH, 2, 8, 8, Position()))
    keep_B11K = torch.ones(2, 1, 1, keys, dtype=torch.bool)
    keep_B11K[1, ..., 2:] = False
    gradients = []
    for mix in (attention.fused, lambda *arguments: Attention.mix(attention, *arguments)):
        parts = [random(2, 2, n, 8, seed=n).requires_grad_() for n in (3, keys, keys)]
        mix(*parts, hide(keep_B11K, torch.float64)).square().sum().backward()
        gradients.append([part.grad for part in parts])
    assert_close(gradients[0], gradients[1])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("keys", [SHORT, SHORT + 1])
def test_a_hidden_key_has_weight_zero_and_no_key_at_all_gives_no_nan(dtype: torch.dtype, keys: int) -> None:
    attention = DotAttention(WIDTH, 2, 8, 8, Position()).eval()
    q_BHQE, k_BHKE, v_BHKE = (random(2, 2, n, 8, dtype=torch.float64).to(dtype) * 4 for n in (3, keys, keys))
    keep_B11K = torch.zeros(2, 1, 1, keys, dtype=torch.bool)
    keep_B11K[0, ..., :2] = True
    bias_B11K = hide(keep_B11K, dtype)
    assert not attention.weights(q_BHQE, k_BHKE, bias_B11K)[0, ..., 2:].any()
    assert attention.mix(q_BHQE, k_BHKE, v_BHKE, bias_B11K).isfinite().all()
    with torch.no_grad():
        assert attention.mix(q_BHQE, k_BHKE, v_BHKE, bias_B11K).isfinite().all()


def test_hiding_adds_nothing_to_what_is_kept() -> None:
    assert hide(torch.tensor([True, False]), torch.float32).tolist() == [0.0, MASKED]


@pytest.mark.parametrize(("key_width", "value_width"), [(3, 5), (16, 4), (1, 1)])
def test_heads_may_have_any_widths(key_width: int, value_width: int) -> None:
    attention = drawn(DotAttention(WIDTH, 4, key_width, value_width, Position()))
    assert attention.query.weight.shape == attention.key.weight.shape == (4 * key_width, WIDTH)
    assert attention.value.weight.shape == (4 * value_width, WIDTH)
    assert attention.output.weight.shape == (WIDTH, 4 * value_width)
    x_BQD, memory_BKD = random(2, 3, WIDTH), random(2, 5, WIDTH, seed=4)
    q = (x_BQD @ attention.query.weight.T).reshape(2, 3, 4, key_width)
    k = (memory_BKD @ attention.key.weight.T).reshape(2, 5, 4, key_width)
    v = (memory_BKD @ attention.value.weight.T).reshape(2, 5, 4, value_width)
    weights = (torch.einsum("bqhe,bkhe->bhqk", q, k) / key_width**0.5).softmax(-1)
    expected = torch.einsum("bhqk,bkhe->bqhe", weights, v).flatten(2) @ attention.output.weight.T
    assert_close(attention(x_BQD, memory_BKD), expected)


def test_projections_have_no_biases() -> None:
    assert [name for name, _ in DotAttention(WIDTH, 2, 8, 8, Position()).named_parameters()] == [
        "query.weight",
        "key.weight",
        "value.weight",
        "output.weight",
    ]


@pytest.mark.parametrize("keys", [SHORT, SHORT + 1])
def test_dropout_thins_the_weights_and_only_while_training(keys: int) -> None:
    attention = drawn(DotAttention(WIDTH, 2, 8, 8, Position(), dropout=0.5))
    torch.manual_seed(0)
    q_BHQE, k_BHKE = random(64, 2, 32, 8), random(64, 2, keys, 8, seed=4)
    ones_BHKE = torch.ones(64, 2, keys, 8, dtype=torch.float64)
    assert_close(attention.mix(q_BHQE, k_BHKE, ones_BHKE, None), torch.ones(64, 2, 32, 8, dtype=torch.float64))
    mixed = attention.train().mix(q_BHQE, k_BHKE, ones_BHKE, None)
    assert mixed.std() > 0.1
    assert abs(mixed.mean() - 1) < 0.02


def test_the_fused_kernel_drops_out_while_training_only() -> None:
    attention = DotAttention(WIDTH, 2, 8, 8, Position(), dropout=0.5)
    q_BHQE, ones_BHKE = random(4, 2, 5, 8), torch.ones(4, 2, 7, 8, dtype=torch.float64)
    torch.manual_seed(0)
    assert attention.train().fused(q_BHQE, q_BHQE[:, :, :1].expand_as(ones_BHKE), ones_BHKE, None).std() > 0.1
    assert_close(
        attention.eval().fused(q_BHQE, q_BHQE, q_BHQE, None), attention.eval().mix(q_BHQE, q_BHQE, q_BHQE, None)
    )


@pytest.mark.parametrize("mask_dtype", [torch.float32, torch.float64], ids=str)
def test_the_mask_may_be_of_a_wider_type_than_the_queries(mask_dtype: torch.dtype) -> None:
    attention = DotAttention(WIDTH, 2, 8, 8, Position()).eval()
    q_BHQE, k_BHKE = random(2, 2, 3, 8, dtype=torch.float64).bfloat16(), random(2, 2, 5, 8, seed=4).bfloat16()
    keep_B11K = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    keep_B11K[1, ..., 2:] = False
    mixed = attention.fused(q_BHQE, k_BHKE, k_BHKE, hide(keep_B11K, mask_dtype))
    assert_close(mixed[1], attention.fused(q_BHQE, k_BHKE[:, :, :2], k_BHKE[:, :, :2], None)[1], rtol=0.05, atol=0.05)


def test_a_positions_bias_joins_the_mask() -> None:
    class Near(Position):
        def bias(self, q_BHQE: torch.Tensor, keys: int, start: int = 0) -> torch.Tensor:
            place_Q1 = torch.arange(start, start + q_BHQE.size(2))[:, None]
            return -(place_Q1 - torch.arange(keys)).abs()[None, None].to(q_BHQE.dtype)

    attention = drawn(DotAttention(WIDTH, 2, 8, 8, Near()))
    x_BTD, keep_TT = random(2, 4, WIDTH), torch.ones(4, 4, dtype=torch.bool).tril()
    q_BHTE, (k_BHTE, v_BHTE) = attention.split(attention.query(x_BTD)), attention.remember(x_BTD)
    distance_TT = (torch.arange(4)[:, None] - torch.arange(4)).abs()
    scores = q_BHTE @ k_BHTE.mT / 8**0.5 - distance_TT
    weights = scores.masked_fill(~keep_TT, -torch.inf).softmax(-1)
    expected = (weights @ v_BHTE).transpose(1, 2).flatten(2) @ attention.output.weight.T
    assert_close(attention(x_BTD, x_BTD, hide(keep_TT[None, None], torch.float64)), expected)
    last = attention.attend(x_BTD[:, 3:], k_BHTE, v_BHTE, None, start=3)
    assert_close(last, expected[:, 3:])
