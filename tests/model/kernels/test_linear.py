"""Products by oneDNN: torch's own, and their gradients."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from nmt.model.kernels import linear


@pytest.mark.skipif(not linear.AVAILABLE, reason="this torch has no such product")
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize(("inputs", "outputs"), [(5, 9), (64, 32), (32, 64), (1, 1)])
@pytest.mark.parametrize("shape", [(7,), (64,), (3, 4), (0,)], ids=str)
def test_products_and_their_gradients_are_torchs(
    shape: tuple[int, ...], inputs: int, outputs: int, biased: bool
) -> None:
    torch.manual_seed(1)
    parts = [torch.randn(*shape, inputs), torch.randn(outputs, inputs), *([torch.randn(outputs)] if biased else [])]
    exact = [part.double().requires_grad_() for part in parts]
    parts = [part.requires_grad_() for part in parts]
    y, expected = linear.linear(*parts), torch.nn.functional.linear(*exact)
    assert_close(y.double(), expected, rtol=1e-5, atol=1e-5)
    d = torch.randn_like(y)
    for own, other in zip(
        torch.autograd.grad(y, parts, d), torch.autograd.grad(expected, exact, d.double()), strict=True
    ):
        assert own.shape == other.shape
        assert_close(own.double(), other, rtol=1e-5, atol=1e-5)
