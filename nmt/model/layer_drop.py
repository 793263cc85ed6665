"""Layers that some updates of training leave out (Fan et al. 2020, LayerDrop).

A layer left out passes on what it was given. Its weights, and the memory that it did not read, then have a gradient of
zero, not none: processes that add up their gradients wait for every one of them, and the optimizer treats an update
alike whatever was left out of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from nmt.model.layers import DecoderLayer, EncoderLayer


class MayBeLeftOut(nn.Module):
    """Comes before a layer's class: the layer is left out of training while `left_out` says so."""

    def __init__(self, chance: float, *parts: Any) -> None:
        super().__init__(*parts)
        self.chance = chance  # share of the updates that leave it out; whoever trains tosses the coin
        self.left_out = False

    def forward(self, x: Tensor, *others: Any) -> Tensor:
        """The layer's states, or `x` as it is."""
        if self.training and self.left_out:
            return _PassOn.apply(x, *(other for other in others if isinstance(other, Tensor)), *self.parameters())
        return super().forward(x, *others)


class EncoderLayerLeftOut(MayBeLeftOut, EncoderLayer):
    """An encoder layer that some updates leave out."""


class DecoderLayerLeftOut(MayBeLeftOut, DecoderLayer):
    """A decoder layer that some updates leave out."""


def layers_left_out(model: nn.Module) -> Iterator[MayBeLeftOut]:
    """The layers of `model` that may be left out, in its order."""
    return (module for module in model.modules() if isinstance(module, MayBeLeftOut))


class _PassOn(torch.autograd.Function):
    """The first of its arguments; the others get a gradient of zero."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *others: Tensor) -> Tensor:
        ctx.save_for_backward(*others)
        return x.detach()  # the same numbers, and to autograd no view, before which FSDP warns

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        needed = zip(ctx.saved_tensors, ctx.needs_input_grad[1:], strict=True)
        return gradients[0], *(torch.zeros_like(other) if needs else None for other, needs in needed)
