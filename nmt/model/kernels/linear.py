"""Products with weights while training in float32 on a processor, by oneDNN's kernels where torch would take another's.

N rows · I inputs · O outputs

For float32, torch multiplies by the BLAS that it was built with, most often MKL, whose kernels for processors of other
makers than its own use half of their vectors. oneDNN, which torch carries too and which all bfloat16 products go
through, uses all.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.model.kernels import team


def _offered() -> bool:
    """Whether this torch has oneDNN's product as an operation."""
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


AVAILABLE = _offered()


def linear(x: Tensor, weight_OI: Tensor, bias_O: Tensor | None = None) -> Tensor:
    """x·Wᵀ + b as torch's own, of any number of leading dimensions; those of rows are made faster."""
    if torch.is_grad_enabled() and _suits(x) and not torch.is_autocast_enabled("cpu"):
        y_NO: Tensor = _Linear.apply(x, weight_OI, bias_O)
        return y_NO
    return torch.nn.functional.linear(x, weight_OI, bias_O)


def product(x_NI: Tensor, weight_OI: Tensor) -> Tensor:
    """x·Wᵀ, by the faster kernel; nothing of it is remembered for a gradient."""
    return _multiply(x_NI, weight_OI) if _suits(x_NI) else x_NI @ weight_OI.T


def _suits(x: Tensor) -> bool:
    plain = x.dim() == 2 and x.device.type == "cpu" and x.dtype == torch.float32
    possible = plain and AVAILABLE and not torch.compiler.is_compiling()
    return possible and team.is_whole() and not team.memory_may_be_refused()


def _multiply(x_NI: Tensor, weight_OI: Tensor, bias_O: Tensor | None = None) -> Tensor:
    y_NO: Tensor = torch.ops.mkldnn._linear_pointwise(x_NI, weight_OI, bias_O, "none", [], "")
    return y_NO


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_NI: Tensor, weight_OI: Tensor, bias_O: Tensor | None) -> Tensor:
        ctx.save_for_backward(x_NI, weight_OI)
        return _multiply(x_NI, weight_OI, bias_O)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy_NO: Tensor) -> tuple[Tensor | None, ...]:
        x_NI, weight_OI = ctx.saved_tensors
        dx_NI = _multiply(dy_NO, weight_OI.T) if ctx.needs_input_grad[0] else None
        d_weight_OI = None
        if ctx.needs_input_grad[1]:  # a result that is tall, not wide, is made faster
            tall = x_NI.size(1) <= dy_NO.size(1)
            d_weight_OI = dy_NO.T @ x_NI if tall else (x_NI.T @ dy_NO).T
        return dx_NI, d_weight_OI, dy_NO.sum(0) if ctx.needs_input_grad[2] else None
