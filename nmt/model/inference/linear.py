"""Linear layers with their weights packed once, for a processor.  R rows · I inputs · O outputs

Every kind gives a row the same result whatever rows stand beside it, up to the last digits of float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import linear

Arithmetic = Literal["float32", "bfloat16", "int8"]
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

    def __call__(self, x_RI: Tensor) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(x_RI.to(self.dtype), self.weight_OI, self.bias_O, "none", [], "")


class Int8:
    """Products of whole numbers from -127 to 127: weights with a scale for each output, inputs with one for each row.

    Sums of such products are exact, so that a row's result does not depend on its neighbours at all.
    """

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None) -> None:
        scale_O = weight_OI.abs().amax(1).clamp(min=1e-12) / 127
        whole_OI = (weight_OI / scale_O[:, None]).round().to(torch.int8)
        self.scale_O, self.zero_O = scale_O, torch.zeros(len(scale_O), dtype=torch.int32)
        self.weight_OI = torch.ops.onednn.qlinear_prepack(whole_OI, None)
        self.bias_O = torch.zeros(len(scale_O)) if bias_O is None else bias_O

    def __call__(self, x_RI: Tensor) -> Tensor:
        scale_R1 = torch.linalg.vector_norm(x_RI, torch.inf, -1, keepdim=True).clamp_(min=1e-12).div_(127)
        whole_RI = (x_RI / scale_R1).add_(128.5).to(torch.uint8)  # 128 is zero; the half rounds
        y_RO = torch.ops.onednn.qlinear_pointwise(
            whole_RI, 1.0, 128, self.weight_OI, self.scale_O, self.zero_O, None, 1.0, 0, torch.float32, "none", [], ""
        )
        return torch.addcmul(self.bias_O, y_RO, scale_R1)


def pack(weight_OI: Tensor, bias_O: Tensor | None, arithmetic: Arithmetic) -> Linear:
    """The linear layer of these weights. They are copied: what becomes of them later changes nothing."""
    weight_OI = weight_OI.detach()
    bias_O = None if bias_O is None else bias_O.detach().clone()
    if arithmetic == "int8":
        return Int8(weight_OI.float(), bias_O)
    dtype = getattr(torch, arithmetic)
    bias_O = None if bias_O is None else bias_O.to(dtype)
    kind = Packed if torch.backends.mkldnn.is_available() else Plain
    return kind(weight_OI.to(dtype, copy=True), bias_O)
