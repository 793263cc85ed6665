"""Matrix products between compiled loops.  R rows · I inputs · O outputs

What goes in are rows that a loop has written, and what comes out is read by a loop: whole numbers stay whole numbers,
and their scales are applied where the sums are read. Both lie in memory that the thread's next product of that width
overwrites.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from nmt.model.inference.buffers import Buffers, Numbers
from nmt.model.inference.linear import Arithmetic, filled_rows, pack, takes_narrow_sums
from nmt.model.inference.loops import scale

_buffers = Buffers()


class Rows(NamedTuple):
    """What a product reads, with a scale for each row where they are whole numbers. Behind them some may fill up."""

    z_RI: Numbers
    scale_R: Numbers | None
    tensor_RI: Tensor
    """The same memory."""


class Sums(NamedTuple):
    """What a product gives, with the scales and the bias that are still to be applied to it."""

    y_RO: Numbers
    row_R: Numbers | None = None
    column_O: Numbers | None = None
    bias_O: Numbers | None = None


class Floats:
    """Products of floating-point numbers, read and written in float32."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None, arithmetic: Arithmetic) -> None:
        self.product = pack(weight_OI, bias_O, arithmetic)
        self.inputs = weight_OI.size(1)

    def rows(self, count: int) -> Rows:
        """Room for `count` rows."""
        tensor_RI, z_RI = _buffers.take(filled_rows(count), self.inputs, torch.float32)
        return Rows(z_RI, None, tensor_RI)

    def __call__(self, rows: Rows) -> Sums:
        return Sums(self.product(rows.tensor_RI).numpy())

    def scaled(self, rows: Rows, count: int) -> Tensor:
        """The results of the first `count` rows as such."""
        return self.product(rows.tensor_RI)[:count]


class Wholes:
    """Products of whole numbers from -127 to 127: weights with a scale for each output. Their sums are exact."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None) -> None:
        scale_O = weight_OI.abs().amax(1).clamp(min=1e-12) / 127
        self.whole_IO = (weight_OI / scale_O[:, None]).round().to(torch.int8).T
        self.column_O = scale_O.numpy()
        self.bias_O = (torch.zeros(len(weight_OI)) if bias_O is None else bias_O).numpy()
        self.inputs, self.outputs = self.whole_IO.shape

    def rows(self, count: int) -> Rows:
        """Room for `count` rows."""
        tensor_RI, z_RI = _buffers.take(count, self.inputs, torch.int8)
        return Rows(z_RI, _buffers.take(count, 1, torch.float32).array_RW.reshape(-1), tensor_RI)

    def __call__(self, rows: Rows) -> Sums:
        tensor_RO, y_RO = _buffers.take(len(rows.z_RI), self.outputs, torch.int32)
        torch._int_mm(rows.tensor_RI, self.whole_IO, out=tensor_RO)
        return Sums(y_RO, rows.scale_R, self.column_O, self.bias_O)

    def scaled(self, rows: Rows, count: int) -> Tensor:
        """The results of the first `count` rows as such."""
        sums = self(rows)
        result_RO = _buffers.take(len(rows.z_RI), self.outputs, torch.int32).tensor_RW.view(torch.float32)
        scale(*sums, result_RO.numpy())
        return result_RO[:count]


def product(weight_OI: Tensor, bias_O: Tensor | None, arithmetic: Arithmetic) -> Floats | Wholes:
    """The product with these weights, which are copied."""
    weight_OI = weight_OI.detach()
    bias_O = None if bias_O is None else bias_O.detach().float().clone()
    if arithmetic == "int8" and takes_narrow_sums(weight_OI):
        return Wholes(weight_OI.float(), bias_O)
    return Floats(weight_OI, bias_O, arithmetic)
