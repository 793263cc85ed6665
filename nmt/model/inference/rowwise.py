"""Linear layers that give a row the same digits whatever rows stand beside it.  R rows · I inputs · O outputs

A library's product takes other ways for other numbers of rows, whose sums may end in other digits; a compiled one (see
tiles.py) makes every sum in the order of its inputs. What is done to single numbers here is rounded after every
operation, so that it is the same for each, wherever in a tensor it stands.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nmt.model import compiling
from nmt.model.inference.linear import Arithmetic, Linear, pack
from nmt.model.inference.products import STEP, known, product
from nmt.model.inference.tiles import multiply

_ONLY = np.int64(0)  # the layer of products that have but one


class Rowwise:
    """x Wᵀ + b by compiled loops; any number of leading dimensions."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None, arithmetic: Arithmetic) -> None:
        self.product, self.halves = product([weight_OI], [bias_O], arithmetic), arithmetic == "bfloat16"
        self.kind = torch.from_numpy(self.product.weight_NPKW[:0]).dtype
        columns = self.product.column_NO, self.product.bias_NO
        self.column_O, self.bias_O = (torch.from_numpy(numbers[0]) for numbers in columns)

    def __call__(self, x: Tensor) -> Tensor:
        y_RO = self._sums(x.detach().flatten(0, -2).contiguous())
        return y_RO.view(*x.shape[:-1], self.product.outputs)

    def _sums(self, x_RI: Tensor) -> Tensor:
        if not self.product.column_NO.size:
            return self._multiplied(x_RI.bfloat16().view(torch.uint16) if self.halves else x_RI)
        scale_R1 = x_RI.abs().amax(-1, keepdim=True).clamp_(min=1e-30).div_(127)
        whole_RO = self._multiplied(x_RI.div(scale_R1).round_().to(self.kind)).float()
        return whole_RO.mul_(scale_R1 * self.column_O).add_(self.bias_O)

    def _multiplied(self, z_RI: Tensor) -> Tensor:
        start_NPW = self.product.start_NPW
        y_RO = np.empty((len(z_RI), self.product.outputs), start_NPW.dtype)
        multiply(z_RI.numpy(), self.product.weight_NPKW, _ONLY, start_NPW, y_RO)
        return torch.from_numpy(y_RO)


def fits(inputs: int, arithmetic: Arithmetic) -> bool:
    """Whether there are loops for so many inputs in this arithmetic on this machine."""
    return compiling.AVAILABLE and known(arithmetic) and inputs % STEP == 0


def linear(weight_OI: Tensor, bias_O: Tensor | None, arithmetic: Arithmetic) -> Linear:
    """The linear layer of these weights, row by row where it can be. They are copied."""
    if fits(weight_OI.size(1), arithmetic):
        return Rowwise(weight_OI.detach().float(), bias_O, arithmetic)
    return pack(weight_OI, bias_O, arithmetic)
