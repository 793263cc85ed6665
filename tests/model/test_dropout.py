"""Dropout: how much, what is kept, and that it repeats."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from nmt.model.dropout import Dropout, thin


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9, 1e-4])
def test_zeros_are_as_frequent_as_asked_and_the_mean_stays(p: float) -> None:
    torch.manual_seed(1)
    x = torch.ones(1_000_000)
    y = Dropout(p)(x)
    zeros = (y == 0).double().mean().item()
    assert zeros == pytest.approx(p, abs=5 * (p * (1 - p) / 1e6) ** 0.5 + 1 / 65536)
    assert y[y != 0].unique().tolist() == pytest.approx([1 / (1 - p)], rel=2e-4)
    assert y.mean().item() == pytest.approx(1, abs=0.02)


def test_neighbors_are_dropped_independently() -> None:
    torch.manual_seed(2)
    kept = (thin(torch.ones(400_000), 0.5) > 0).double()
    for distance in (1, 2, 3, 4, 8):
        both = (kept[distance:] * kept[:-distance]).mean().item()
        assert both == pytest.approx(0.25, abs=0.005)


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 3), (5, 1, 7), (0, 4)])
def test_any_shape_is_kept(shape: tuple[int, ...]) -> None:
    assert Dropout(0.5)(torch.ones(shape)).shape == shape


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_the_type_is_kept(dtype: torch.dtype) -> None:
    assert Dropout(0.5)(torch.ones(8, dtype=dtype)).dtype == dtype


def test_the_gradient_flows_where_the_number_did() -> None:
    torch.manual_seed(3)
    x = torch.ones(100, requires_grad=True)
    y = Dropout(0.25)(x)
    y.sum().backward()
    assert_close(x.grad, y.detach())


def test_the_global_generator_decides() -> None:
    x, dropout = torch.ones(64), Dropout(0.5)
    torch.manual_seed(4)
    first, second = dropout(x), dropout(x)
    torch.manual_seed(4)
    assert torch.equal(first, dropout(x))
    assert not torch.equal(first, second)


def test_nothing_is_dropped_when_not_training_or_at_zero() -> None:
    x = torch.ones(64)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


def test_a_probability_near_one_still_gives_finite_numbers() -> None:
    assert Dropout(0.9999999)(torch.ones(1000)).isfinite().all()
