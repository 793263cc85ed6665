"""Token embeddings, whose matrix may also be that of the output.  V vocabulary · D width"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from nmt.model import initial


class Embedding(nn.Module):
    """A vector for every token id, times √width (Vaswani et al. 2017, §3.4).

    The row of the padding id starts at zero and gets no gradient from inputs; where the matrix is tied to the output
    it still learns, from there, that padding is never the next token.
    """

    def __init__(self, size: int, width: int, pad: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size, width))
        self.pad = pad
        self.scale = math.sqrt(width)

    def forward(self, ids: Tensor) -> Tensor:
        """Ids of any shape to vectors with one more dimension, D."""
        return nn.functional.embedding(ids, self.weight, self.pad) * self.scale

    def draw(self, generator: torch.Generator) -> None:
        """Normal with deviation width^-0.5, the padding row zero."""
        initial.normal(self.weight, generator)
        self.weight[self.pad].zero_()


class Output(nn.Module):
    """An output matrix of its own, for models that do not tie it to an embedding."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size, width))

    def draw(self, generator: torch.Generator) -> None:
        """As an embedding: logits of normalized states then have deviation one."""
        initial.normal(self.weight, generator)
