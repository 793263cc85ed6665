"""A learned vector for every position (Vaswani et al. 2017, Table 3 E).  B batch · T tokens · D width"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nmt.errors import DataError
from nmt.model import initial
from nmt.model.position.core import Position


class Learned(Position):
    """One trained vector a position, added to the embeddings; sentences longer than the table are refused."""

    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(length, width))

    def embed(self, x_BTD: Tensor, start: int = 0) -> Tensor:
        """The sum of embeddings and positions. Raises DataError past the last position."""
        end, length = start + x_BTD.size(1), self.weight.size(0)
        if end > length:
            raise DataError(
                f"a sentence of {end} tokens is longer than the model's {length} learned positions",
                "split the sentence, or train with a larger [model.position] length",
            )
        return x_BTD + self.weight[start:end]

    def draw(self, generator: torch.Generator) -> None:
        """Normal with deviation width^-0.5."""
        initial.normal(self.weight, generator)
