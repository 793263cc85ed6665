"""The weights of matrix products, as compiled loops read them.

N layers · R rows · I inputs · O outputs · P panels · K steps · W outputs of a panel (see tiles.py)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmt.model.inference import tiles
from nmt.model.inference.linear import Arithmetic

Numbers = np.ndarray[Any, Any]
STEP = 4
"""Inputs come in multiples of this."""


class Product(NamedTuple):
    """y = x Wᵀ + b for each of some layers."""

    weight_NPKW: Numbers
    start_NPW: Numbers
    """What the sums begin with."""
    column_NO: Numbers
    """Of whole numbers: the scale of each output's weights."""
    bias_NO: Numbers
    """Of whole numbers: what is still to be added once the scales have been applied."""
    outputs: int


def product(weights_OI: Sequence[Tensor], biases_O: Sequence[Tensor | None], arithmetic: Arithmetic) -> Product:
    """The product with these weights, one for each layer, which are copied.

    int8: weights are whole numbers from -127 to 127 with a scale for each output; their sums are exact. A processor
    without instructions for that computes the same in float32.
    """
    assert known(arithmetic)
    weight_NOI = torch.stack([weight_OI.detach().float() for weight_OI in weights_OI]).numpy()
    bias_NO = np.stack([_bias(weight_OI, bias_O) for weight_OI, bias_O in zip(weights_OI, biases_O, strict=True)])
    layers, outputs = bias_NO.shape
    if arithmetic != "int8":
        parts = _halves(weight_NOI) if arithmetic == "bfloat16" else _panels(weight_NOI, 1)
        nothing_NO = np.empty((layers, 0), np.float32)
        return Product(parts, _filled(bias_NO), nothing_NO, nothing_NO, outputs)
    column_NO = np.maximum(np.abs(weight_NOI).max(2), np.float32(1e-12)) / np.float32(127)
    whole_NOI = np.rint(weight_NOI / column_NO[:, :, None])
    if not tiles.multiplies("int8"):
        return Product(_panels(whole_NOI, 1), _filled(np.zeros_like(bias_NO)), column_NO, bias_NO, outputs)
    shifted_NO = -128 * whole_NOI.sum(2).astype(np.int32)  # the instruction reads x + 128
    return Product(_panels(whole_NOI.astype(np.int8), 4), _filled(shifted_NO), column_NO, bias_NO, outputs)


def known(arithmetic: Arithmetic) -> bool:
    """Whether there are loops for it on this processor."""
    return arithmetic != "bfloat16" or tiles.multiplies("uint16")


def row_scales(product: Product, rows: int) -> Numbers | None:
    """Room for what each row of whole numbers is to be multiplied by."""
    return np.empty(rows, np.float32) if product.column_NO.size else None


def _bias(weight_OI: Tensor, bias_O: Tensor | None) -> Numbers:
    return np.zeros(len(weight_OI), np.float32) if bias_O is None else bias_O.detach().float().clone().numpy()


def _halves(weight_NOI: Numbers) -> Numbers:
    return _panels(torch.from_numpy(weight_NOI).bfloat16().view(torch.uint16).numpy(), 2)


def _panels(weight_NOI: Numbers, each: int) -> Numbers:
    panels = np.stack([tiles.panels(weight_OI, each) for weight_OI in weight_NOI])
    return _aligned(panels.reshape(*panels.shape[:3], -1))


def _filled(start_NO: Numbers) -> Numbers:
    layers, outputs = start_NO.shape
    start_NPW = np.zeros((layers, -(-outputs // tiles.WIDTH) * tiles.WIDTH), start_NO.dtype)
    start_NPW[:, :outputs] = start_NO
    return start_NPW.reshape(layers, -1, tiles.WIDTH)


def _aligned(numbers: Numbers) -> Numbers:
    """A copy that begins where a line of the processor's caches does, as torch's memory does."""
    return torch.from_numpy(numbers).clone().numpy()
