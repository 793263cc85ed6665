"""Linear layers with their weights packed once, for a processor.  R rows · I inputs · O outputs

Every kind gives a row the same result whatever rows stand beside it, up to the last digits of float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import linear

from nmt.model.inference.hardware import multiplies_int8

Arithmetic = Literal["float32", "bfloat16", "float16", "int8"]
Linear = Callable[[Tensor], Tensor]
"""x_RI → y_RO; any number of leading dimensions."""


class Plain:
    """x Wᵀ + b by torch's own product, for machines without oneDNN."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None) -> None:
        self.weight_OI, self.bias_O = weight_OI, bias_O

    def __call__(self, x_RI: Tensor) -> Tensor:
        return linear(x_RI.to(self.weight_OI.dtype), self.weight_OI, self.bias_O)


class Packed:
    """The same by oneDNN, which has the weights in the order in which it reads them."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None) -> None:
        self.dtype = weight_OI.dtype
        self.weight_OI = torch.ops.mkldnn._reorder_linear_weight(weight_OI.contiguous())
        self.bias_O = bias_O

    def __call__(self, x: Tensor) -> Tensor:
        x_RI = filled_up(x.flatten(0, -2), self.dtype)
        y_RO = torch.ops.mkldnn._linear_pointwise.default(x_RI, self.weight_OI, self.bias_O, "none", [], "")
        return _as_given(y_RO, x).float()


class Int8:
    """Products of whole numbers from -127 to 127: weights with a scale for each output, inputs with one for each row.

    Sums of such products are exact, so that a row's result does not depend on its neighbours at all.
    """

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None) -> None:
        self.scale_O = weight_OI.abs().amax(1).clamp(min=1e-12) / 127
        self.sums = _kind(weight_OI)((weight_OI / self.scale_O[:, None]).round(), self.scale_O)
        self.bias_O = bias_O

    def __call__(self, x: Tensor) -> Tensor:
        x_RI = x.flatten(0, -2)
        scale_R1 = x_RI.abs().amax(-1, keepdim=True).mul_(1 / 127).clamp_(min=1e-30)
        y_RO = self.sums(torch.div(x_RI, scale_R1).round_())
        y_RO = y_RO.mul_(scale_R1) if self.bias_O is None else torch.addcmul(self.bias_O, y_RO, scale_R1)
        return _as_given(y_RO, x)


class Sums:
    """Sums of products of whole numbers, times the scales of the weights, on any processor: exact in float32 too."""

    def __init__(self, whole_OI: Tensor, scale_O: Tensor) -> None:
        self.whole_OI, self.scale_O = whole_OI, scale_O

    def __call__(self, whole_RI: Tensor) -> Tensor:
        return linear(whole_RI, self.whole_OI).mul_(self.scale_O)


class NarrowSums(Sums):
    """The same by the processor's own instructions, with no preparation for numbers of rows."""

    def __init__(self, whole_OI: Tensor, scale_O: Tensor) -> None:
        super().__init__(whole_OI.to(torch.int8), scale_O)

    def __call__(self, whole_RI: Tensor) -> Tensor:
        return torch._int_mm(whole_RI.to(torch.int8), self.whole_OI.T).float().mul_(self.scale_O)


class WideSums(NarrowSums):
    """The same by a kernel that scales its sums itself: faster where there are many outputs and some rows."""

    FEW = 16

    def __init__(self, whole_OI: Tensor, scale_O: Tensor) -> None:
        super().__init__(whole_OI, scale_O)
        self.packed_OI = torch.ops.onednn.qlinear_prepack(self.whole_OI, None)
        self.zero_O = torch.zeros(len(scale_O), dtype=torch.int32)

    def __call__(self, whole_RI: Tensor) -> Tensor:
        if len(whole_RI) <= self.FEW:
            return super().__call__(whole_RI)
        shifted_RI = whole_RI.to(torch.int8).view(torch.uint8).bitwise_xor_(128)  # the kernel's zero is 128
        y_RO = torch.ops.onednn.qlinear_pointwise.default(
            filled_up(shifted_RI, torch.uint8), 1.0, 128, self.packed_OI, self.scale_O, self.zero_O,
            None, 1.0, 0, torch.float32, "none", [], "",
        )  # fmt: skip
        return y_RO[: len(whole_RI)]


def takes_narrow_sums(weight_OI: Tensor) -> bool:
    """Whether torch's product of 8-bit whole numbers serves these weights on this processor."""
    return multiplies_int8() and weight_OI.size(1) > 1  # of a single input torch mistakes the order of the weights


def _kind(weight_OI: Tensor) -> type[Sums]:
    if not takes_narrow_sums(weight_OI):
        return Sums
    return WideSums if len(weight_OI) >= 2048 and _offers("onednn", "qlinear_pointwise") else NarrowSums


def _offers(library: str, operator: str) -> bool:
    """Whether this torch has the operator, which is not of its public interface."""
    return hasattr(getattr(torch.ops, library), operator)


def filled_up(x_RI: Tensor, dtype: torch.dtype) -> Tensor:
    """The rows in another type, with more of any content behind them, so that few numbers of rows occur.

    oneDNN prepares itself for each that it meets, which takes as long as the product of some 100 rows.
    """
    rows, width = x_RI.shape
    filled = filled_rows(rows)
    if filled == rows:
        return x_RI.to(dtype)
    more_RI = x_RI.new_empty(filled, width, dtype=dtype)
    more_RI[:rows] = x_RI
    return more_RI


def filled_rows(rows: int) -> int:
    """The rows to which as many are filled up."""
    step = 1 if rows <= 16 else 16 if rows <= 256 else 64
    return -(-rows // step) * step


def _as_given(y_RO: Tensor, x: Tensor) -> Tensor:
    """The results of the rows of `x`, in its leading dimensions."""
    return y_RO[: len(x)] if x.dim() == 2 else y_RO[: x.shape[:-1].numel()].unflatten(0, x.shape[:-1])


def pack(weight_OI: Tensor, bias_O: Tensor | None, arithmetic: Arithmetic) -> Linear:
    """The linear layer of these weights. They are copied: what becomes of them later changes nothing."""
    weight_OI = weight_OI.detach()
    bias_O = None if bias_O is None else bias_O.detach().clone()
    if arithmetic == "int8":
        return Int8(weight_OI.float(), bias_O)
    dtype = getattr(torch, arithmetic)
    bias_O = None if bias_O is None else bias_O.to(dtype)
    kind = Packed if torch.backends.mkldnn.is_available() and _offers("mkldnn", "_linear_pointwise") else Plain
    return kind(weight_OI.to(dtype, copy=True), bias_O)
