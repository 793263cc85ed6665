"""Attention of packed sentences with its gradient, by loops that touch each number once.

N rows of queries · M rows of keys and values · C columns · D width of all heads · B sentences · H heads
2 queries, keys
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.model.kernels import team


def suits(x_ND: Tensor, widths: Collection[int]) -> bool:
    """Whether there are loops for the queries, keys and values made of `x_ND`, where heads have these widths."""
    if len(widths) != 1 or not team.reaches(x_ND):
        return False
    from nmt.model.vectors import LANES

    low = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x_ND.dtype
    return low in team.KINDS and all(width % LANES == 0 for width in widths)


def attention(q_NC: Tensor, kv_MC: Tensor | None, starts_2B: Tensor, heads: int, causal: bool) -> Tensor:
    """softmax(QKᵀ/√E)V of each sentence and head, y_ND (Vaswani et al. 2017, §3.2.1).

    `q_NC` holds queries, and where `kv_MC` is None keys and values beside them; else `kv_MC` holds these two. The rows
    of sentence b begin at `starts_2B[:, b]` and end before those of the next; in rows that belong to none stand zeros.
    With `causal`, a query sees no key that stands after it.
    """
    y_ND: Tensor = _Attention.apply(q_NC, kv_MC, starts_2B, heads, causal)
    return y_ND


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q_NC: Tensor, kv_MC: Tensor | None, starts_2B: Tensor, heads: int, causal: bool) -> Tensor:
        from nmt.model.kernels.attention_loops import attend

        width = q_NC.size(1) // 3 if kv_MC is None else q_NC.size(1)
        y_ND, kept_NH = q_NC.new_empty(len(q_NC), width), q_NC.new_empty(len(q_NC), 2 * heads, dtype=torch.float32)
        y_ND[int(starts_2B[0, -1]) :] = 0
        attend(
            q_NC.dtype,
            starts_2B.size(1) - 1,
            *_words(q_NC, kv_MC, starts_2B, heads, causal, width),
            y_ND,
            kept_NH,
            width,
        )
        ctx.save_for_backward(q_NC, kv_MC, starts_2B, kept_NH)
        ctx.heads, ctx.causal = heads, causal
        return y_ND

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy_ND: Tensor) -> tuple[Tensor | None, ...]:
        from nmt.model.kernels.attention_loops import attend_back

        q_NC, kv_MC, starts_2B, kept_NH = ctx.saved_tensors
        width, dy_ND = dy_ND.size(1), dy_ND.contiguous()
        dq_NC = torch.empty_like(q_NC)
        dkv_MC = dq_NC if kv_MC is None else torch.empty_like(kv_MC)
        dq_NC[int(starts_2B[0, -1]) :] = 0
        dkv_MC[int(starts_2B[1, -1]) :] = 0
        words = _words(q_NC, kv_MC, starts_2B, ctx.heads, ctx.causal, width)
        attend_back(q_NC.dtype, starts_2B.size(1) - 1, *words, dy_ND, kept_NH, width, dq_NC, dkv_MC)
        return dq_NC, None if kv_MC is None else dkv_MC, None, None, None


def _words(
    q_NC: Tensor, kv_MC: Tensor | None, starts_2B: Tensor, heads: int, causal: bool, width: int
) -> tuple[int | Tensor, ...]:
    """What both loops are told first."""
    columns = (0, width, 2 * width) if kv_MC is None else (0, 0, width)
    kv_MC = q_NC if kv_MC is None else kv_MC
    sizes = *q_NC.shape, *kv_MC.shape
    return *sizes, *columns, starts_2B.size(1) - 1, heads, causal, q_NC, kv_MC, starts_2B
