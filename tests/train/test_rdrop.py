"""R-Drop's loss is the paper's formula on whole logits, and its chunks change nothing."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div
from torch.testing import assert_close
from train.toys import PAD, model, pairs

from nmt.batches.batch import Batch
from nmt.train.fit import learn
from nmt.train.loss import Objective, sequence_loss
from nmt.train.optimizer import sgd
from nmt.train.rdrop import RDropObjective, rdrop_loss
from nmt.train.rules import Rules


def tensors(seed: int, rows: int, columns: int, size: int, width: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    x_2BTD = torch.randn(2, rows, columns, width, generator=random, dtype=torch.float64, requires_grad=True)
    weight_VD = torch.randn(size, width, generator=random, dtype=torch.float64, requires_grad=True)
    return x_2BTD, weight_VD, torch.randint(0, size, (rows, columns), generator=random)


def whole(x_2BTD: Tensor, weight_VD: Tensor, out_BT: Tensor, alpha: float, smoothing: float) -> Tensor:
    """Half of the paper's loss, by torch's own cross-entropy and divergence of whole logits."""
    real = out_BT != PAD
    logits = [(x_BTD @ weight_VD.T)[real] for x_BTD in x_2BTD]
    entropy = sum(cross_entropy(each, out_BT[real], reduction="sum", label_smoothing=smoothing) for each in logits)
    log_p, log_q = (each.log_softmax(-1) for each in logits)
    divergence = kl_div(log_q, log_p, reduction="sum", log_target=True)
    divergence = divergence + kl_div(log_p, log_q, reduction="sum", log_target=True)
    return (entropy + alpha / 2 * divergence) / 2


@given(
    st.integers(0, 99),
    st.sampled_from([0.0, 0.1]),
    st.sampled_from([0.0, 1.0, 5.0]),
    st.integers(1, 4),
    st.integers(1, 9),
)
@settings(max_examples=30)
def test_chunks_give_the_papers_loss_and_its_gradients(
    seed: int, smoothing: float, alpha: float, rows: int, chunk: int
) -> None:
    x_2BTD, weight_VD, out_BT = tensors(seed, rows, 5, 7)
    loss, nll = rdrop_loss(x_2BTD, weight_VD, out_BT, alpha=alpha, smoothing=smoothing, pad=PAD, chunk=chunk)
    plain = whole(x_2BTD, weight_VD, out_BT, alpha, smoothing)
    assert_close(loss, plain)
    assert_close(nll, whole(x_2BTD, weight_VD, out_BT, 0.0, 0.0).detach())
    found = torch.autograd.grad(loss / 3, (x_2BTD, weight_VD))
    assert_close(found, torch.autograd.grad(plain / 3, (x_2BTD, weight_VD)))


def test_the_gradient_is_that_of_finite_differences() -> None:
    x_2BTD, weight_VD, out_BT = tensors(3, 2, 3, 6)
    out_BT[0, 2] = PAD
    assert torch.autograd.gradcheck(
        lambda x, w: rdrop_loss(x, w, out_BT, alpha=3.0, smoothing=0.1, pad=PAD, chunk=2)[0], (x_2BTD, weight_VD)
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_without_alpha_it_is_half_the_ordinary_loss_of_the_doubled_batch(smoothing: float) -> None:
    x_2BTD, weight_VD, out_BT = tensors(4, 3, 6, 9)
    loss, nll = rdrop_loss(x_2BTD, weight_VD, out_BT, alpha=0.0, smoothing=smoothing, pad=PAD)
    both = sequence_loss(x_2BTD.flatten(0, 1), weight_VD, torch.cat((out_BT, out_BT)), smoothing=smoothing, pad=PAD)
    assert_close((loss, nll), (both[0] / 2, both[1] / 2))
    gradients = [torch.autograd.grad(value, (x_2BTD, weight_VD)) for value in (loss, both[0] / 2)]
    assert_close(*gradients)


def test_without_dropout_an_update_is_the_ordinary_one_whatever_alpha() -> None:
    batches = [pairs().load(torch.arange(start, start + 4).numpy()) for start in (0, 4)]
    ordinary, doubled = model(dropout=0.0).double(), model(dropout=0.0).double()
    plain = learn(ordinary, sgd(ordinary), batches, rate=0.3, rules=Rules(), pad=PAD)
    twice = learn(doubled, sgd(doubled), batches, rate=0.3, rules=Rules(rdrop_alpha=5.0), pad=PAD)
    assert twice.loss == pytest.approx(plain.loss, rel=1e-9) and twice.tokens == plain.tokens
    assert_close(dict(doubled.named_parameters()), dict(ordinary.named_parameters()), rtol=1e-9, atol=1e-12)


def doubled(batch: Batch) -> Batch:
    tensors = (batch.src_BS, batch.keep_BS, batch.tgt_BT, batch.out_BT)
    return Batch(*(torch.cat((tensor, tensor)) for tensor in tensors), 2 * batch.tokens)


def test_without_alpha_the_whole_objective_is_that_of_every_pair_twice_under_dropout_too() -> None:
    trained, batch = model(dropout=0.3).double(), pairs().load(torch.arange(7).numpy())
    torch.manual_seed(3)
    loss, _ = RDropObjective(trained, 0.0)(batch, 0.1, PAD)
    torch.manual_seed(3)
    plain, _ = Objective(trained)(doubled(batch), 0.1, PAD)
    assert_close(loss, plain / 2)


def test_under_dropout_the_passes_differ_and_alpha_counts() -> None:
    trained, batch = model(dropout=0.3).double(), pairs().load(torch.arange(7).numpy())
    losses = []
    for alpha in (0.0, 1.0, 2.0):
        torch.manual_seed(3)
        losses.append(RDropObjective(trained, alpha)(batch, 0.1, PAD)[0].item())
    assert losses[1] - losses[0] == pytest.approx(losses[2] - losses[1]) and losses[1] > losses[0] + 1e-3


def test_a_batch_of_no_pairs_has_no_loss_and_no_gradient() -> None:
    trained, data = model(), pairs()
    loss, nll = RDropObjective(trained, 5.0)(data.load(torch.arange(0).numpy()), 0.1, PAD)
    loss.backward()
    assert loss.item() == nll.item() == 0
    assert all(p.grad is not None and not p.grad.any() for p in trained.parameters())


def test_under_bfloat16_products_are_short_and_sums_are_not() -> None:
    x_2BTD, weight_VD, out_BT = (t.detach() for t in tensors(6, 4, 50, 30))
    x_2BTD, weight_VD = x_2BTD.float().requires_grad_(), weight_VD.float().requires_grad_()
    exact, _ = rdrop_loss(x_2BTD, weight_VD, out_BT, alpha=1.0, smoothing=0.1, pad=PAD)
    with torch.autocast("cpu", torch.bfloat16):
        rough, _ = rdrop_loss(x_2BTD, weight_VD, out_BT, alpha=1.0, smoothing=0.1, pad=PAD)
    assert rough.dtype == torch.float32
    assert_close(rough, exact, rtol=0.02, atol=0)
    for found, expected in zip(
        torch.autograd.grad(rough, (x_2BTD, weight_VD)), torch.autograd.grad(exact, (x_2BTD, weight_VD)), strict=True
    ):
        assert found.dtype == torch.float32
        assert float((found - expected).norm() / expected.norm()) < 0.02


def test_a_share_of_the_loss_gives_that_share_of_the_gradient_in_bfloat16_too() -> None:
    x_2BTD, weight_VD, out_BT = (t.detach().float() if t.is_floating_point() else t for t in tensors(6, 9, 20, 30, 64))
    x_2BTD, weight_VD = x_2BTD.bfloat16().requires_grad_(), weight_VD.requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        loss, _ = rdrop_loss(x_2BTD, weight_VD, out_BT, alpha=5.0, smoothing=0.1, pad=PAD)
    whole_grad, part = (torch.autograd.grad(loss / n, x_2BTD, retain_graph=True)[0].float() for n in (1, 3))
    assert float((whole_grad * part).sum() / (part * part).sum()) == pytest.approx(3, rel=5e-4)  # 1/3 would be 0.334
