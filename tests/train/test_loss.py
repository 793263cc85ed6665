"""The loss is torch's own, and its chunks change nothing."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from nmt.train.loss import sequence_loss, smoothed_loss

PAD = 0


def tensors(seed: int, rows: int, columns: int, size: int, width: int = 5) -> tuple[torch.Tensor, ...]:
    random = torch.Generator().manual_seed(seed)
    x_BTD = torch.randn(rows, columns, width, generator=random, dtype=torch.float64, requires_grad=True)
    weight_VD = torch.randn(size, width, generator=random, dtype=torch.float64, requires_grad=True)
    return x_BTD, weight_VD, torch.randint(0, size, (rows, columns), generator=random)


@given(st.integers(0, 99), st.sampled_from([0.0, 0.1, 0.5]), st.integers(2, 40))
@settings(max_examples=25)
def test_the_smoothed_loss_is_torchs_cross_entropy(seed: int, smoothing: float, size: int) -> None:
    logits_NV = torch.randn(17, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    target_N = torch.randint(0, size, (17,), generator=torch.Generator().manual_seed(seed))
    expected = cross_entropy(logits_NV, target_N, ignore_index=PAD, reduction="sum", label_smoothing=smoothing)
    assert_close(smoothed_loss(logits_NV, target_N, smoothing, PAD), expected, atol=1e-9, rtol=1e-9)


@given(st.integers(0, 99), st.sampled_from([0.0, 0.1]), st.integers(1, 4), st.integers(1, 6), st.integers(1, 9))
@settings(max_examples=25)
def test_chunks_give_the_loss_and_gradients_of_the_whole(
    seed: int, smoothing: float, rows: int, columns: int, chunk: int
) -> None:
    x_BTD, weight_VD, out_BT = tensors(seed, rows, columns, 7)
    loss, nll = sequence_loss(x_BTD, weight_VD, out_BT, smoothing=smoothing, pad=PAD, chunk=chunk)
    found = torch.autograd.grad(loss / 3, (x_BTD, weight_VD))
    logits_NV = (x_BTD @ weight_VD.T).flatten(0, 1)
    plain = cross_entropy(logits_NV, out_BT.flatten(), ignore_index=PAD, reduction="sum", label_smoothing=smoothing)
    assert_close(loss, plain)
    assert_close(nll, cross_entropy(logits_NV, out_BT.flatten(), ignore_index=PAD, reduction="sum"))
    assert_close(found, torch.autograd.grad(plain / 3, (x_BTD, weight_VD)))


def test_the_gradient_is_that_of_finite_differences() -> None:
    x_BTD, weight_VD, out_BT = tensors(3, 2, 3, 6)
    out_BT[0, 2] = PAD
    assert torch.autograd.gradcheck(
        lambda x, w: sequence_loss(x, w, out_BT, smoothing=0.1, pad=PAD, chunk=2)[0], (x_BTD, weight_VD)
    )


def test_a_matrix_shared_with_an_embedding_gets_both_gradients() -> None:
    _, weight_VD, out_BT = tensors(4, 2, 5, 9)

    def gradient(loss: torch.Tensor) -> torch.Tensor:
        return torch.autograd.grad(loss, weight_VD)[0]

    x_BTD = torch.nn.functional.embedding(out_BT, weight_VD).tanh()
    plain = smoothed_loss((x_BTD @ weight_VD.T).flatten(0, 1), out_BT.flatten(), 0.1, PAD)
    expected = gradient(plain)
    x_BTD = torch.nn.functional.embedding(out_BT, weight_VD).tanh()
    assert_close(gradient(sequence_loss(x_BTD, weight_VD, out_BT, smoothing=0.1, pad=PAD)[0]), expected)


@pytest.mark.parametrize("grad", [True, False])
def test_without_gradients_the_loss_is_the_same(grad: bool) -> None:
    x_BTD, weight_VD, out_BT = tensors(5, 3, 4, 8)
    with torch.set_grad_enabled(grad):
        loss, _ = sequence_loss(x_BTD, weight_VD, out_BT, smoothing=0.1, pad=PAD)
    assert loss.requires_grad == grad
    expected = smoothed_loss((x_BTD @ weight_VD.T).flatten(0, 1), out_BT.flatten(), 0.1, PAD)
    assert_close(loss.detach(), expected.detach())


def test_under_bfloat16_products_are_short_and_sums_are_not() -> None:
    x_BTD, weight_VD, out_BT = (t.detach() for t in tensors(6, 4, 50, 30))
    x_BTD, weight_VD = x_BTD.float().requires_grad_(), weight_VD.float().requires_grad_()
    exact, _ = sequence_loss(x_BTD, weight_VD, out_BT, smoothing=0.1, pad=PAD)
    with torch.autocast("cpu", torch.bfloat16):
        loss, _ = sequence_loss(x_BTD.bfloat16(), weight_VD, out_BT, smoothing=0.1, pad=PAD)
    assert loss.dtype == torch.float32
    assert_close(loss, exact, rtol=1e-2, atol=0)
    rough, fine = torch.autograd.grad(loss, weight_VD)[0], torch.autograd.grad(exact, weight_VD)[0]
    assert rough.dtype == torch.float32
    assert_close(rough, fine, rtol=0.1, atol=0.5)


def test_a_batch_of_padding_alone_has_no_loss() -> None:
    x_BTD, weight_VD, out_BT = tensors(7, 2, 3, 6)
    loss, nll = sequence_loss(x_BTD, weight_VD, torch.zeros_like(out_BT), smoothing=0.1, pad=PAD)
    assert loss.item() == nll.item() == 0


def test_of_a_frozen_matrix_no_gradient_is_made() -> None:
    x_BTD, weight_VD, out_BT = tensors(6, 3, 4, 8)
    loss, _ = sequence_loss(x_BTD, weight_VD, out_BT, smoothing=0.1, pad=PAD)
    expected, _ = torch.autograd.grad(loss, (x_BTD, weight_VD))
    loss, _ = sequence_loss(x_BTD, weight_VD.detach(), out_BT, smoothing=0.1, pad=PAD)
    assert loss.grad_fn.saved_tensors[1] is None
    assert torch.equal(torch.autograd.grad(loss, x_BTD)[0], expected)
