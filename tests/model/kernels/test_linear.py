"""Products by oneDNN: torch's own, and their gradients."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from torch.testing import assert_close

from nmt.model.kernels import linear, team


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


@pytest.mark.skipif(not team.available(), reason="torch has no threads here that others may use")
def test_products_are_whole_where_openmp_may_give_fewer_threads_than_were_asked_for(threads: None) -> None:
    torch.manual_seed(2)
    torch.set_num_threads(3)
    x, weight = torch.randn(128, 64), torch.randn(96, 64, requires_grad=True)
    expected = x.double() @ weight.detach().double().T
    team.openmp().omp_set_dynamic(1)
    try:
        own = [linear.linear(x, weight), linear.product(x, weight.detach())]
    finally:
        team.openmp().omp_set_dynamic(0)
    for one in own:
        assert_close(one.detach().double(), expected, rtol=1e-4, atol=1e-4)


LIMITED = """
import torch
from nmt.model.kernels import team
torch.set_num_threads(3)
team.make_whole()
assert torch.get_num_threads() == 2 and team.is_whole()
torch.manual_seed(2)
x, weight = torch.randn(128, 64).bfloat16(), torch.randn(96, 64).bfloat16()
y = torch.nn.functional.linear(x, weight).float()
torch.testing.assert_close(y, x.float() @ weight.float().T, rtol=0.02, atol=0.1)
"""


@pytest.mark.skipif(not team.available(), reason="torch has no threads here that others may use")
def test_torch_is_kept_from_asking_for_more_threads_than_openmp_gives() -> None:
    limits = {"OMP_THREAD_LIMIT": "2", "OMP_DYNAMIC": "true"}
    subprocess.run([sys.executable, "-c", LIMITED], env={**os.environ, **limits}, check=True, timeout=120)
