"""Loops over rows: what torch's operations give, in either type, for any width and number of threads."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close

from nmt.model.dropout import Dropout
from nmt.model.kernels import rows, team
from nmt.model.layers import FeedForward, LayerNorm

pytestmark = pytest.mark.skipif(not team.available(), reason="torch has no threads here that others may use")
sizes = {"count": st.integers(1, 40), "width": st.integers(1, 70), "seed": st.integers(0, 2**31)}


def drawn(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape).to(dtype).requires_grad_()


def with_gradients(function: Callable[..., Tensor], *given: Any) -> tuple[Tensor, ...]:
    """What it gives, and the gradient of a function of it by each tensor that has one."""
    y = function(*given)
    d = torch.linspace(-1, 1, y.numel(), dtype=torch.float64).view(y.shape).to(y.dtype)
    return y, *torch.autograd.grad(y, [x for x in given if isinstance(x, Tensor) and x.requires_grad], d)


@given(**sizes)
@settings(max_examples=40)
def test_layer_norm_is_torchs(count: int, width: int, seed: int) -> None:
    torch.manual_seed(seed)
    parts = drawn(count, 2, width), drawn(width), drawn(width)
    expected = with_gradients(
        lambda x, w, b: nn.functional.layer_norm(x, (width,), w, b, 1e-6),
        *(p.detach().double().requires_grad_() for p in parts),
    )
    for own, other in zip(with_gradients(rows.layer_norm, *parts, 1e-6), expected, strict=True):
        if width > 2:  # else deviations may be tiny, and all is magnified
            assert_close(own.double(), other, rtol=1e-3, atol=1e-3)


@given(**sizes, p=st.sampled_from([0.1, 0.5, 0.9]))
@settings(max_examples=40)
def test_a_thinned_sum_is_the_sum_with_what_dropout_leaves(count: int, width: int, seed: int, p: float) -> None:
    torch.manual_seed(seed)
    x, y, dropout = drawn(count, width), drawn(count, width), Dropout(p)
    torch.manual_seed(seed)
    own = with_gradients(dropout.added, x, y)
    torch.manual_seed(seed)
    assert_close(own, with_gradients(lambda x, y: x + dropout(y), x, y))


@given(**sizes)
@settings(max_examples=40)
def test_rectifying_is_torchs(count: int, width: int, seed: int) -> None:
    torch.manual_seed(seed)
    y, bias = drawn(count, width), drawn(width)
    own = with_gradients(lambda y, b: rows.rectified(y * 1, b), y, bias)
    assert_close(own, with_gradients(lambda y, b: torch.relu(y + b), y, bias))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_training_and_translating_feed_forward_alike(dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    layer, x = FeedForward(32, 64), torch.randn(50, 32)
    nn.init.normal_(layer.inner.weight), nn.init.normal_(layer.outer.weight)
    nn.init.normal_(layer.inner.bias), nn.init.normal_(layer.outer.bias)
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
        trained, translated = layer.train()(x), layer.eval()(x)
    assert_close(trained, translated, **({} if dtype == torch.float32 else {"rtol": 0.05, "atol": 0.5}))


@given(**sizes, size=st.sampled_from([0.1, 1.0, 40.0]))
@settings(max_examples=40)
def test_the_gradient_of_logits_is_their_softmax_less_what_the_label_has(
    count: int, width: int, seed: int, size: float
) -> None:
    torch.manual_seed(seed)
    logits, target = size * torch.randn(count, width), torch.randint(width, (count,))
    p = logits.double().softmax(1)
    expected = p - 0.9 * nn.functional.one_hot(target, width)
    own = logits.clone()
    nll = rows.to_gradient(own, target, 0.9)
    assert_close(own.double(), expected, rtol=1e-4, atol=1e-6)
    assert_close(
        nll.double(), nn.functional.cross_entropy(logits.double(), target, reduction="none"), rtol=1e-5, atol=1e-5
    )


def test_a_matrix_of_fewer_bits_is_added_exactly() -> None:
    y, x = torch.randn(30, 17), torch.randn(30, 17).bfloat16()
    expected = y + x
    rows.add(y, x)
    assert torch.equal(y, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_row_does_not_depend_on_the_number_of_threads(dtype: torch.dtype, threads: None) -> None:
    torch.manual_seed(3)
    x, weight, bias = drawn(61, 48, dtype=dtype), drawn(48), drawn(48)

    def of_rows(number: int) -> list[Tensor]:
        torch.set_num_threads(number)
        torch.manual_seed(4)
        y, dx, *_ = with_gradients(rows.layer_norm, x, weight, bias, 1e-6)
        logits = x.detach().clone()
        nll = rows.to_gradient(logits, torch.arange(61) % 48, 0.9)
        return [y, dx, *with_gradients(Dropout(0.3).added, x, x.detach() + 1), logits, nll]

    for one, other in zip(of_rows(1), of_rows(5), strict=True):
        assert torch.equal(one, other)


def test_bfloat16_is_rounded_only_when_it_is_written() -> None:
    torch.manual_seed(5)
    x, weight, bias = drawn(20, 40, dtype=torch.bfloat16), drawn(40), drawn(40)
    own = with_gradients(rows.layer_norm, x, weight, bias, 1e-6)[:2]
    exact = with_gradients(rows.layer_norm, x.detach().float().requires_grad_(), weight, bias, 1e-6)[:2]
    assert torch.equal(own[0], exact[0].bfloat16())
    assert_close(own[1].float(), exact[1], rtol=0.01, atol=0.02)  # its gradient came rounded


def test_all_is_computed_where_fewer_threads_run_than_were_asked_for(threads: None) -> None:
    torch.set_num_threads(4)
    x, weight, bias = drawn(100, 32), drawn(32), drawn(32)
    levels = team.openmp().omp_get_max_active_levels()
    expected = with_gradients(rows.layer_norm, x, weight, bias, 1e-6)
    team.openmp().omp_set_max_active_levels(0)  # now OpenMP gives one
    try:
        own = with_gradients(rows.layer_norm, x, weight, bias, 1e-6)
    finally:
        team.openmp().omp_set_max_active_levels(levels)
    assert_close(own, expected)


@pytest.mark.parametrize("bits", [0x7FC00000, 0x7FFFFFFF, -0x400000, -1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_what_is_no_number_stays_none(dtype: torch.dtype, bits: int) -> None:
    none = torch.tensor([bits], dtype=torch.int32).view(torch.float32)
    y = torch.ones(2, 20, dtype=dtype)
    assert rows.rectified(y, none.repeat(20)).isnan().all()


@pytest.mark.parametrize("layer", [LayerNorm(32), FeedForward(32, 64)], ids=["norm", "feed-forward"])
def test_a_layer_whose_weights_have_fewer_bits_trains_as_it_translates(layer: nn.Module) -> None:
    torch.manual_seed(6)
    x, layer = torch.randn(50, 32).bfloat16(), copy.deepcopy(layer).bfloat16()
    for weight in layer.parameters():
        nn.init.normal_(weight)
    assert_close(layer.train()(x), layer.eval()(x), rtol=0.05, atol=0.5)


def test_loops_do_not_ask_which_type_torch_makes_where_nothing_is_said() -> None:
    torch.manual_seed(7)
    x, y, logits = torch.randn(9, 16), torch.randn(9, 16), torch.randn(9, 16)
    levels, target = torch.ones(9, 16, dtype=torch.int16), torch.arange(9)
    weight, bias = torch.ones(16), torch.zeros(16)

    def of_rows() -> list[Tensor]:
        gradient = logits.clone()
        parts = [part.clone().requires_grad_() for part in (x, weight, bias)]
        normed = with_gradients(rows.layer_norm, *parts, 1e-6)
        return [*normed, rows.sum_thinned(x, y, levels, 0, 1.5), rows.to_gradient(gradient, target, 0.9), gradient]

    expected, before = of_rows(), torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        own = of_rows()
    finally:
        torch.set_default_dtype(before)
    assert_close(own, expected)
