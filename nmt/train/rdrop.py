"""R-Drop: two passes under different dropout shall agree (Liang et al. 2021).

N tokens · D width · V vocabulary · C tokens of one chunk · 2 passes

Every sentence pair goes through the model twice. With the two passes' distributions p and q of a token, and the
smoothed cross-entropies CE of nmt/train/loss.py, the paper's loss is CE(p) + CE(q) + α/2·(KL(p‖q) + KL(q‖p)). Half of
that is taken here, so that it stays on the scale of the ordinary loss: at α = 0 it is the ordinary loss of a batch
that holds every pair twice.

With d = log p − log q and J = KL(p‖q) + KL(q‖p) = Σ_v (p_v − q_v)·d_v, the gradient by the logits of p is

    ∂J/∂a_v = p_v·(d_v − KL(p‖q)) + p_v − q_v,   and that by those of q the same with p and q changed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.batches.batch import Batch
from nmt.model.seq2seq import Seq2Seq
from nmt.train.loss import real_places, tokens_told

CHUNK = 128  # tokens whose logits, those of both passes, are held at once on a CPU
GPU_CHUNK = 1024


class RDropObjective(nn.Module):
    """A model together with its R-Drop loss on a batch, as one module: in the place of nmt.train.loss.Objective."""

    def __init__(self, model: Seq2Seq, alpha: float) -> None:
        super().__init__()
        self.model = model
        self.alpha = alpha

    def forward(self, batch: Batch, smoothing: float, pad: int) -> tuple[Tensor, Tensor]:
        """The summed loss, and the summed −log p of the labels, the mean of both passes: see `rdrop_loss`."""
        src_2BS, keep_2BS, tgt_2BT = (torch.cat((t, t)) for t in (batch.src_BS, batch.keep_BS, batch.tgt_BT))
        x_2BTD = self.model(src_2BS, keep_2BS, tgt_2BT).unflatten(0, (2, -1))
        return rdrop_loss(
            x_2BTD,
            self.model.output_weight_VD,
            batch.out_BT,
            alpha=self.alpha,
            smoothing=smoothing,
            pad=pad,
            tokens=tokens_told(self.model, batch),
        )


def rdrop_loss(
    x_2BTD: Tensor,
    weight_VD: Tensor,
    out_BT: Tensor,
    *,
    alpha: float,
    smoothing: float,
    pad: int,
    chunk: int | None = None,
    tokens: int | None = None,
) -> tuple[Tensor, Tensor]:
    """½·(CE(p) + CE(q)) + α/4·(KL(p‖q) + KL(q‖p)), summed over tokens, of two passes' decoder states.

    Also the summed −log p of the labels, the mean of both passes, which has no gradient. Logits are made `chunk`
    tokens at a time and never kept: their gradient is known in the same pass.
    """
    real_N = real_places(out_BT, pad, tokens)
    x_2ND = x_2BTD.flatten(1, 2).index_select(1, real_N)
    target_N = out_BT.flatten().index_select(0, real_N)
    chunk = chunk or (GPU_CHUNK if x_2ND.is_cuda else CHUNK)
    loss, nll = _ChunkedPair.apply(x_2ND, weight_VD, target_N, smoothing, alpha, chunk, torch.is_grad_enabled())
    return loss, nll


class _ChunkedPair(torch.autograd.Function):
    """x_2ND · weight_VDᵀ → loss, with the gradients of x and weight computed on the way."""

    @staticmethod
    def forward(
        ctx: Any,
        x_2ND: Tensor,
        weight_VD: Tensor,
        target_N: Tensor,
        smoothing: float,
        alpha: float,
        chunk: int,
        learning: bool,
    ) -> tuple[Tensor, Tensor]:
        kind = x_2ND.device.type
        exact = torch.promote_types(weight_VD.dtype, torch.float32)
        low = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else exact
        loss, nll = x_2ND.new_zeros((), dtype=exact), x_2ND.new_zeros((), dtype=exact)
        dx_2ND = torch.empty_like(x_2ND) if learning else None
        dweight_VD = torch.zeros_like(weight_VD, dtype=exact) if learning and ctx.needs_input_grad[1] else None
        with torch.autocast(kind, enabled=False):
            matrix_VD = weight_VD.to(low)
            for start in range(0, len(target_N), chunk):
                rows = slice(start, start + chunk)
                x_2CD = x_2ND[:, rows].to(low)
                logits_2CV = nn.functional.linear(x_2CD, matrix_VD).to(exact)
                some, own, d_2CV = _of_chunk(logits_2CV, target_N[rows], smoothing, alpha, learning)
                loss, nll = loss + some, nll + own
                if dx_2ND is None or d_2CV is None:
                    continue
                d_low_2CV = d_2CV.to(low)
                dx_2ND[:, rows] = d_low_2CV @ matrix_VD
                if dweight_VD is not None:
                    dweight_VD += d_low_2CV.flatten(0, 1).T @ x_2CD.flatten(0, 1)
        ctx.save_for_backward(dx_2ND, dweight_VD)
        ctx.weight_type = weight_VD.dtype
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        dx_2ND, dweight_VD = ctx.saved_tensors
        dweight_VD = None if dweight_VD is None else (dweight_VD * d_loss).to(ctx.weight_type)
        return dx_2ND * d_loss, dweight_VD, None, None, None, None, None


def _of_chunk(
    logits_2CV: Tensor, target_C: Tensor, smoothing: float, alpha: float, learning: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The loss of some tokens, their −log p, and, if `learning`, the loss's gradient by the logits."""
    log_2CV = logits_2CV.log_softmax(-1)
    own_2C1 = log_2CV.gather(2, target_C.expand(2, -1)[..., None])
    p_2CV = log_2CV.exp()
    d_2CV = log_2CV - log_2CV.flip(0)  # log p − log q in the first pass's place, log q − log p in the second's
    kl_2C1 = (p_2CV * d_2CV).sum(-1, keepdim=True)
    nll = -own_2C1.sum() / 2
    loss = (1 - smoothing) * nll - smoothing * log_2CV.mean(-1).sum() / 2 + alpha / 4 * kl_2C1.sum()
    if not learning:
        return loss, nll, None
    gradient_2CV = (d_2CV - kl_2C1).add_(1).mul_(p_2CV).sub_(p_2CV.flip(0)).mul_(alpha / 4)
    gradient_2CV.add_(p_2CV, alpha=0.5).sub_(smoothing / 2 / logits_2CV.size(-1))
    gradient_2CV.scatter_add_(2, target_C.expand(2, -1)[..., None], torch.full_like(own_2C1, (smoothing - 1) / 2))
    return loss, nll, gradient_2CV
