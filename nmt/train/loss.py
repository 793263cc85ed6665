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
from nmt.model.seq2seq import Seq2Seq

CHUNK = 256  # tokens whose logits are held at once on a CPU, whose caches larger ones leave
GPU_CHUNK = 2048  # a GPU wants larger matrices, but has no memory to waste


def smoothed_loss(logits_NV: Tensor, target_N: Tensor, smoothing: float, pad: int) -> Tensor:
    """The summed loss by the formula above, tokens equal to `pad` left out. Plain, differentiable, for whole logits."""
    log_p_NV = logits_NV.log_softmax(-1)
    own_N = log_p_NV.gather(1, target_N[:, None]).squeeze(1)
    loss_N = -(1 - smoothing) * own_N - smoothing * log_p_NV.mean(-1)
    return loss_N.masked_select(target_N != pad).sum()


def sequence_loss(
    x_BTD: Tensor, weight_VD: Tensor, out_BT: Tensor, *, smoothing: float, pad: int, chunk: int | None = None
) -> tuple[Tensor, Tensor]:
    """The summed loss of decoder states against labels, and the summed −log p of the labels, which has no gradient.

    Logits are made `chunk` tokens at a time and never kept: their gradient is known in the same pass. Padding costs
    nothing, for only real tokens are projected. Under autocast the matrix products take its type, the rest float32.
    """
    real_N = (out_BT.flatten() != pad).nonzero().squeeze(1)
    x_ND = x_BTD.flatten(0, 1).index_select(0, real_N)
    target_N = out_BT.flatten().index_select(0, real_N)
    chunk = chunk or (GPU_CHUNK if x_ND.is_cuda else CHUNK)
    learning = torch.is_grad_enabled()
    loss, nll = _ChunkedLoss.apply(x_ND, weight_VD, target_N, smoothing, chunk, learning)
    return loss, nll


class Objective(nn.Module):
    """A model together with its loss on a batch: the whole of what is differentiated, as one module."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch, smoothing: float, pad: int) -> tuple[Tensor, Tensor]:
        """The summed loss and the summed −log p of the batch's labels: see sequence_loss."""
        x_BTD = self.model(batch.src_BS, batch.keep_BS, batch.tgt_BT)
        return sequence_loss(x_BTD, self.model.output_weight_VD, batch.out_BT, smoothing=smoothing, pad=pad)


class _ChunkedLoss(torch.autograd.Function):
    """x_ND · weight_VDᵀ → loss, with the gradients of x and weight computed on the way."""

    @staticmethod
    def forward(
        ctx: Any, x_ND: Tensor, weight_VD: Tensor, target_N: Tensor, smoothing: float, chunk: int, learning: bool
    ) -> tuple[Tensor, Tensor]:
        kind = x_ND.device.type
        exact = torch.promote_types(weight_VD.dtype, torch.float32)  # of softmax, sums and the weight's gradient
        low = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else exact
        loss, nll = x_ND.new_zeros((), dtype=exact), x_ND.new_zeros((), dtype=exact)
        dx_ND = torch.empty_like(x_ND) if learning else None
        dweight_VD = torch.zeros_like(weight_VD, dtype=exact) if learning else None
        with torch.autocast(kind, enabled=False):
            matrix_VD = weight_VD.to(low)
            for x_CD, target_C, rows in _chunks(x_ND, target_N, chunk):
                x_CD = x_CD.to(low)
                logits_CV = nn.functional.linear(x_CD, matrix_VD).to(exact)
                own_C, total_C = logits_CV.gather(1, target_C[:, None]).squeeze(1), logits_CV.logsumexp(1)
                nll += (total_C - own_C).sum()
                loss += (total_C - (1 - smoothing) * own_C - smoothing * logits_CV.mean(1)).sum()
                if dx_ND is None or dweight_VD is None:
                    continue
                d_CV = logits_CV.sub_(total_C[:, None]).exp_()  # p; the logits are not needed any more
                d_CV.sub_(smoothing / d_CV.size(1))
                d_CV.scatter_add_(1, target_C[:, None], d_CV.new_full((len(target_C), 1), smoothing - 1))
                d_low_CV = d_CV.to(low)
                dx_ND[rows] = d_low_CV @ matrix_VD
                if low == exact:
                    dweight_VD.addmm_(d_low_CV.T, x_CD)
                else:
                    dweight_VD += d_low_CV.T @ x_CD
        ctx.save_for_backward(dx_ND, dweight_VD)
        ctx.weight_type = weight_VD.dtype
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        dx_ND, dweight_VD = ctx.saved_tensors
        return dx_ND * d_loss.to(dx_ND.dtype), (dweight_VD * d_loss).to(ctx.weight_type), None, None, None, None


def _chunks(x_ND: Tensor, target_N: Tensor, chunk: int) -> list[tuple[Tensor, Tensor, slice]]:
    slices = [slice(start, start + chunk) for start in range(0, len(target_N), chunk)]
    return [(x_ND[rows], target_N[rows], rows) for rows in slices]
