"""Cross-entropy against smoothed labels, summed over tokens.

N tokens · D width · V vocabulary · C tokens of one chunk

With smoothing ε the target distribution is q = (1 − ε)·onehot(y) + ε/V: the mass is spread evenly over all V tokens,
the true one included (Szegedy et al. 2016; Vaswani et al. 2017, §5.4; torch's `label_smoothing`). With logits z and
Z = log Σ exp z, the loss of a token is

    −Σ_v q_v log p_v  =  Z − (1 − ε)·z_y − ε/V · Σ_v z_v,   its gradient  ∂/∂z_v = p_v − q_v.

Everything here is a sum over tokens. Whoever makes an update divides once, by all its target tokens.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.batches.batch import Batch
from nmt.model.kernels import rows as kernels
from nmt.model.kernels.linear import product
from nmt.model.seq2seq import Seq2Seq
from nmt.model.ways import Way

CHUNK = 1024  # tokens whose logits are held at once on a CPU
GPU_CHUNK = 2048  # a GPU wants larger matrices, but has no memory to waste


def smoothed_loss(logits_NV: Tensor, target_N: Tensor, smoothing: float, pad: int) -> Tensor:
    """The summed loss by the formula above, tokens equal to `pad` left out. Plain, differentiable, for whole logits."""
    log_p_NV = logits_NV.log_softmax(-1)
    own_N = log_p_NV.gather(1, target_N[:, None]).squeeze(1)
    loss_N = -(1 - smoothing) * own_N - smoothing * log_p_NV.mean(-1)
    return loss_N.masked_select(target_N != pad).sum()


def sequence_loss(
    x_BTD: Tensor,
    weight_VD: Tensor,
    out_BT: Tensor,
    *,
    smoothing: float,
    pad: int,
    chunk: int | None = None,
    tokens: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The summed loss of decoder states against labels, and the summed −log p of the labels, which has no gradient.

    Logits are made `chunk` tokens at a time and never kept: their gradient is known in the same pass. Padding costs
    nothing, for only real tokens are projected; see `real_places` for `tokens`, their number.
    Under autocast the matrix products take its type, the rest float32.
    """
    real_N = real_places(out_BT, pad, tokens)
    x_ND = x_BTD.flatten(0, 1).index_select(0, real_N)
    target_N = out_BT.flatten().index_select(0, real_N)
    chunk = chunk or (GPU_CHUNK if x_ND.is_cuda else CHUNK)
    learning = torch.is_grad_enabled()
    loss, nll = _ChunkedLoss.apply(x_ND, weight_VD, target_N, smoothing, chunk, learning)
    return loss, nll


def real_places(out_BT: Tensor, pad: int, tokens: int | None = None) -> Tensor:
    """Where in the flattened labels there is no padding, in order.

    Where `tokens` says how many they are, nothing waits for a device to tell: sorting sees to their order.
    """
    if tokens is None:
        return (out_BT.flatten() != pad).nonzero().squeeze(1)
    return (out_BT.flatten() == pad).byte().argsort(stable=True)[:tokens]


def tokens_told(model: Seq2Seq, batch: Batch) -> int | None:
    """The batch's number of labels, if waiting for a device to count them would be slower."""
    return batch.tokens if model.way(batch.out_BT.device) is Way.FUSED else None


class Objective(nn.Module):
    """A model together with its loss on a batch: the whole of what is differentiated, as one module."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch, smoothing: float, pad: int) -> tuple[Tensor, Tensor]:
        """The summed loss and the summed −log p of the batch's labels: see sequence_loss."""
        x_BTD = self.model(batch.src_BS, batch.keep_BS, batch.tgt_BT)
        return sequence_loss(
            x_BTD,
            self.model.output_weight_VD,
            batch.out_BT,
            smoothing=smoothing,
            pad=pad,
            tokens=tokens_told(self.model, batch),
        )


class _ChunkedLoss(torch.autograd.Function):
    """x_ND · weight_VDᵀ → loss, with the gradients of x and weight computed on the way."""

    @staticmethod
    def forward(
        ctx: Any, x_ND: Tensor, weight_VD: Tensor, target_N: Tensor, smoothing: float, chunk: int, learning: bool
    ) -> tuple[Tensor, Tensor]:
        kind = x_ND.device.type
        exact = torch.promote_types(weight_VD.dtype, torch.float32)  # of softmax, sums and the weight's gradient
        low = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else exact
        with torch.autocast(kind, enabled=False):
            x_low_ND, matrix_VD = x_ND.to(low), weight_VD.to(low)
            # The even share ε/V of every label adds the same row to each gradient: no need to touch all logits for it.
            share = smoothing / weight_VD.size(0)
            even_D, x_D = share * matrix_VD.sum(0, dtype=exact), x_low_ND.sum(0, dtype=exact)
            loss, nll = -(x_D @ even_D), x_ND.new_zeros((), dtype=exact)
            dx_ND = x_ND.new_empty(x_ND.shape, dtype=exact) if learning else None
            moving = learning and ctx.needs_input_grad[1]  # the matrix may be frozen
            dweight_VD = (-share * x_D).repeat(weight_VD.size(0), 1) if moving else None
            chunk = min(chunk, max(len(x_ND), 1))
            all_CV = x_ND.new_empty((chunk, weight_VD.size(0)), dtype=low)
            for start in range(0, len(target_N), chunk):
                rows = slice(start, start + chunk)
                x_CD, target_C = x_low_ND[rows], target_N[rows]
                logits_CV = torch.mm(x_CD, matrix_VD.T, out=all_CV[: len(x_CD)])
                own_C = logits_CV.gather(1, target_C[:, None]).squeeze(1).to(exact)
                nll_C, d_CV = _of_chunk(logits_CV, own_C, target_C, 1 - smoothing, exact, learning)
                nll += nll_C.sum()
                loss += nll_C.sum() + smoothing * own_C.sum()
                if d_CV is None or dx_ND is None:
                    continue
                dx_ND[rows] = product(d_CV, matrix_VD.T) - even_D
                if dweight_VD is None:
                    continue
                if low == exact:
                    dweight_VD.addmm_(d_CV.T, x_CD)
                elif kernels.suits(d_CV):
                    kernels.add(dweight_VD, d_CV.T @ x_CD)
                else:
                    dweight_VD += d_CV.T @ x_CD
        ctx.save_for_backward(dx_ND, dweight_VD)
        ctx.types = x_ND.dtype, weight_VD.dtype
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        dx_ND, dweight_VD = ctx.saved_tensors
        x_type, weight_type = ctx.types
        d_weight_VD = None if dweight_VD is None else (dweight_VD * d_loss).to(weight_type)
        return (dx_ND * d_loss).to(x_type), d_weight_VD, None, None, None, None


def _of_chunk(
    logits_CV: Tensor, own_C: Tensor, target_C: Tensor, sure: float, exact: torch.dtype, learning: bool
) -> tuple[Tensor, Tensor | None]:
    """−log p of each label, and where it is wanted the gradient by the logits but for the even share, in their place.

    Logits of few bits make no better gradient by a softmax of many; only a loss that is measured gets that.
    """
    if learning and kernels.suits(logits_CV):
        return kernels.to_gradient(logits_CV, target_C, sure), logits_CV
    p_CV = logits_CV.softmax(1, logits_CV.dtype if learning else exact)
    # The sum that softmax divided by is not told, but its largest element tells it.
    total_C = logits_CV.amax(1).to(exact) - p_CV.amax(1).to(exact).log()
    if learning:
        p_CV[torch.arange(len(p_CV), device=p_CV.device), target_C] -= sure
    return total_C - own_C, p_CV if learning else None
