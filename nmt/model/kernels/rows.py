"""What is done to each row by itself, with its gradient, by loops that touch each number once.

N rows · D width · F feed-forward · C rows of a chunk · V vocabulary · T threads · 2 mean and one over the deviation, or
weight and bias
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.model.kernels import team


@cache
def _loops() -> ModuleType:
    from nmt.model.kernels import row_loops

    return row_loops


def suits(*tensors: Tensor, weights: Sequence[Tensor] = ()) -> bool:
    """Whether there are loops for these, which are of one shape, and for `weights` of their columns."""
    first = tensors[0]
    return (
        first.dtype in team.KINDS
        and all(x.dtype == first.dtype for x in tensors)
        and all(weight.dtype == torch.float32 for weight in weights)
        and all(x.is_contiguous() and team.reaches(x) for x in (*tensors, *weights))
    )


def layer_norm(x: Tensor, weight_D: Tensor, bias_D: Tensor, eps: float) -> Tensor:
    """LayerNorm (Ba et al. 2016) of the last dimension, in the type of `x`; weight and bias are float32."""
    y: Tensor = _LayerNorm.apply(x, weight_D, bias_D, eps)
    return y


def sum_thinned(x: Tensor, y: Tensor, levels: Tensor, bound: int, factor: float) -> Tensor:
    """x + y·factor where `levels`, int16, are at least `bound`, and x elsewhere."""
    z: Tensor = _SumThinned.apply(x, y, levels, bound, factor)
    return z


def rectified(y: Tensor, bias_F: Tensor) -> Tensor:
    """max(0, y + bias), in the memory of `y`; the bias is float32."""
    z: Tensor = _Rectified.apply(y, bias_F)
    return z


def to_gradient(logits_CV: Tensor, target_C: Tensor, sure: float) -> Tensor:
    """−log p of each row's label, float32; the logits become p, less `sure` at the label."""
    nll_C = _empty(logits_CV, len(logits_CV))
    _loops().to_gradient(*_shape(logits_CV), _number(sure), logits_CV, target_C, nll_C)
    return nll_C


def add(y_ND: Tensor, x_ND: Tensor) -> None:
    """`y_ND` becomes y + x: torch would make a float32 copy of a bfloat16 `x` first."""
    _loops().add(*_shape(x_ND), x_ND, y_ND)


def _shape(x: Tensor) -> tuple[torch.dtype, int, int]:
    """What every loop over rows is told first: the type, how many there are, and their width."""
    return x.dtype, math.prod(x.shape[:-1]), x.size(-1)


def _empty(x: Tensor, *shape: int) -> Tensor:
    """Float32 numbers beside `x`, whatever torch makes where nothing is said."""
    return x.new_empty(shape, dtype=torch.float32)


def _number(value: float) -> Tensor:
    """A number of which a loop is given the address."""
    return torch.tensor(value, dtype=torch.float32, device="cpu")


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight_D: Tensor, bias_D: Tensor, eps: float) -> Tensor:
        y, kept_N2 = torch.empty_like(x), _empty(x, _shape(x)[1], 2)
        _loops().normalize(*_shape(x), _number(eps), x, weight_D, bias_D, y, kept_N2)
        ctx.save_for_backward(x, weight_D, kept_N2)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight_D, kept_N2 = ctx.saved_tensors
        dy, dx = dy.contiguous(), torch.empty_like(x)
        sum_T2D = _empty(x, torch.get_num_threads(), 2, x.size(-1)).zero_()
        _loops().normalize_back(*_shape(x), x, weight_D, kept_N2, dy, dx, sum_T2D)
        return dx, *sum_T2D.sum(0), None


class _SumThinned(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, levels: Tensor, bound: int, factor: float) -> Tensor:
        z, scale = torch.empty_like(x), _number(factor)
        _loops().add_thinned(*_shape(x), bound, scale, x, y, levels, z)
        ctx.save_for_backward(levels, scale)
        ctx.bound = bound
        return z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dz: Tensor) -> tuple[Tensor | None, ...]:
        levels, scale = ctx.saved_tensors
        dz = dz.contiguous()
        dy = torch.empty_like(dz)
        _loops().thinned(*_shape(dz), ctx.bound, scale, dz, levels, dy)
        return dz, dy, None, None, None


class _Rectified(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor, bias_F: Tensor) -> Tensor:
        _loops().rectify(*_shape(y), y, bias_F)
        ctx.mark_dirty(y)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dz: Tensor) -> tuple[Tensor | None, ...]:
        (z,) = ctx.saved_tensors
        dz, dy = dz.contiguous(), torch.empty_like(z)
        sum_TF = _empty(z, torch.get_num_threads(), z.size(-1)).zero_()
        _loops().rectify_back(*_shape(z), z, dz, dy, sum_TF)
        return dy, sum_TF.sum(0)
