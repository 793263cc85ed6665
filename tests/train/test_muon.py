"""Muon against singular values, torch's own Muon and AdamW."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close
from train.test_optimizer import push
from train.toys import model

from nmt.checkpoint.tensors import weights
from nmt.train.muon import Muon, muon, orthogonal
from nmt.train.optimizer import adam, decayed, set_rate

ADAM = {"betas": (0.9, 0.98), "epsilon": 1e-9}


def learner(of: torch.nn.Module, momentum: float = 0.95, weight_decay: float = 0.0) -> Muon:
    return muon(of, momentum=momentum, iterations=5, precision="float32", weight_decay=weight_decay, **ADAM)  # type: ignore[arg-type]


@settings(max_examples=40)
@given(rows=st.integers(1, 12), columns=st.integers(1, 12), size=st.sampled_from([1e-12, 1.0, 1e6]))
def test_the_iteration_changes_singular_values_alone_and_by_the_polynomial(
    rows: int, columns: int, size: float
) -> None:
    x_BIO = torch.randn(3, rows, columns, generator=torch.Generator().manual_seed(rows * 13 + columns)).double() * size
    left, values, right = torch.linalg.svd(x_BIO, full_matrices=False)
    values = values / x_BIO.norm(dim=(1, 2))[:, None]
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    assert_close(orthogonal(x_BIO, 5, torch.float64), left @ torch.diag_embed(values) @ right)
    assert_close(
        orthogonal(x_BIO.float(), 5, torch.float32).double(), left @ torch.diag_embed(values) @ right, atol=1e-3, rtol=0
    )


def test_five_iterations_bring_all_but_tiny_singular_values_near_one() -> None:
    x_BIO = torch.randn(4, 48, 20, generator=torch.Generator().manual_seed(3))
    values = torch.linalg.svdvals(orthogonal(x_BIO, 5, torch.float32))
    assert (values > 0.6).all() and (values < 1.3).all()


def test_a_gradient_of_nothing_changes_nothing() -> None:
    trained = model()
    made, before = learner(trained), {name: tensor.clone() for name, tensor in weights(trained).items()}
    for parameter in trained.parameters():
        parameter.grad = torch.zeros_like(parameter)
    set_rate(made, 0.1)
    made.step()
    assert_close(weights(trained), before, atol=0, rtol=0)


def test_what_is_no_matrix_of_a_layer_learns_as_by_adam() -> None:
    one, two = model(), model()
    first, second = learner(one), adam(two, betas=(0.9, 0.98), epsilon=1e-9)
    for n in range(1, 4):
        for trained, made in ((one, first), (two, second)):
            push(trained, n)
            set_rate(made, 0.01 * n)
            made.step()
    turned = {id(p) for p in decayed(one)[0]}
    theirs = dict(two.named_parameters())
    for name, parameter in one.named_parameters():
        assert torch.equal(parameter, theirs[name]) == (id(parameter) not in turned)


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this torch has no Muon")
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@torch.no_grad()
def test_matrices_learn_as_by_torchs_own(weight_decay: float) -> None:
    one, two = model(), model()
    made = learner(one, weight_decay=weight_decay)
    made.dtype = torch.bfloat16  # as torch's own always does
    matrices = decayed(two)[0]
    theirs = torch.optim.Muon(matrices, lr=0.01, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw")
    before = [matrix.clone() for matrix in matrices]
    for n in range(1, 4):
        push(one, n)
        push(two, n)
        set_rate(made, 0.01)
        made.step()
        theirs.step()
    for ours, other, old in zip(decayed(one)[0], matrices, before, strict=True):
        assert float((ours - other).norm() / (other - old).norm()) < 0.05  # bfloat16, added up in another order


def test_matrices_of_one_shape_learn_as_each_by_itself() -> None:
    trained = model()
    made = learner(trained)
    push(trained, 1)
    expected = {}
    for name, parameter in trained.named_parameters():
        if any(parameter is matrix for matrix in decayed(trained)[0]):
            (turned,) = orthogonal(parameter.grad[None] * 0.0975, 5, torch.float32)  # 1 - 0.95²: Nesterov's first
            expected[name] = parameter.detach() - 0.01 * 0.2 * max(parameter.shape) ** 0.5 * turned
    set_rate(made, 0.01)
    made.step()
    for name, parameter in trained.named_parameters():
        if name in expected:
            assert_close(parameter.detach(), expected[name], atol=1e-5, rtol=1e-5)
