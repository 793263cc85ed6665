"""Weights before the first update, drawn from an explicit generator.

- Projections and feed-forward matrices: uniform on ±√(6 / (inputs + outputs)) (Glorot & Bengio 2010), biases zero.
- Embeddings, untied output matrices and learned positions: normal with deviation width^-0.5, so that an embedding
  times √width, as the model reads it, has the size of a position code. The padding row is zero.
- LayerNorm: scale one, shift zero.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from nmt.model.kernels.linear import linear


class Linear(nn.Linear):
    """A matrix and perhaps a bias, left blank until `initialize`: torch would draw from its global generator."""

    def reset_parameters(self) -> None:
        """Nothing: `initialize` draws the weights."""

    def forward(self, x: Tensor) -> Tensor:
        """x·Wᵀ + b."""
        return linear(x, self.weight, self.bias)


@runtime_checkable
class Drawn(Protocol):
    """A part that draws its own weights."""

    def draw(self, generator: torch.Generator) -> None:
        """Fill the weights; gradients are off."""


@torch.no_grad()
def initialize(model: nn.Module, generator: torch.Generator) -> None:
    """Draw the weights of every part of `model`, in the order in which the parts are listed.

    A part of another kind is `Drawn`: it has a method of its own.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            uniform(module.weight, generator)
            if module.bias is not None:
                module.bias.zero_()
        elif isinstance(module, nn.LayerNorm):
            module.weight.fill_(1.0)
            module.bias.zero_()
        elif isinstance(module, Drawn):
            module.draw(generator)


def uniform(matrix: Tensor, generator: torch.Generator) -> None:
    """Fill a matrix by Glorot and Bengio's rule."""
    if not matrix.is_meta:  # a shape without storage: there is nothing to draw
        nn.init.xavier_uniform_(matrix, generator=generator)


def normal(vectors: Tensor, generator: torch.Generator) -> None:
    """Fill rows, each one vector of the model's width, with deviation width^-0.5."""
    if not vectors.is_meta:
        vectors.normal_(0.0, vectors.size(-1) ** -0.5, generator=generator)
