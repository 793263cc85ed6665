"""Sine and cosine codes (Vaswani et al. 2017, §3.5).  B batch · T tokens · D width"""

from __future__ import annotations

import torch
from torch import Tensor

from nmt.model.position.core import Position


class Sinusoidal(Position):
    """PE(pos, 2i) = sin(pos / 10000^(2i/width)), PE(pos, 2i+1) the cosine; added to the embeddings."""

    table_TD: Tensor

    def __init__(self, width: int, length: int = 512) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("table_TD", codes(length, width), persistent=False)

    def embed(self, x_BTD: Tensor, start: int = 0) -> Tensor:
        """The sum of embeddings and codes; there is no longest sentence, the table grows when it must."""
        end = start + x_BTD.size(1)
        if end > self.table_TD.size(0):
            with torch.inference_mode(False):  # a table made while translating must serve training too
                self.table_TD = codes(2 * end, self.width).to(self.table_TD)
        return x_BTD + self.table_TD[start:end].to(x_BTD.dtype)


def codes(length: int, width: int) -> Tensor:
    """The codes of the first `length` positions, computed in float64 and rounded once."""
    position_T1 = torch.arange(length, dtype=torch.float64, device="cpu")[:, None]
    angle_TF = position_T1 * torch.pow(10000.0, -torch.arange(0, width, 2, dtype=torch.float64, device="cpu") / width)
    return torch.stack([angle_TF.sin(), angle_TF.cos()], dim=-1).flatten(1).to(torch.get_default_dtype())
