"""Queries and keys turned by their position (Su et al. 2021).  B batch · H heads · T tokens · E width of a head"""

from __future__ import annotations

import torch
from torch import Tensor

from nmt.model.position.core import Position


class Rotary(Position):
    """Dimensions i and i + E/2 of a head turn together by pos / 10000^(2i/E).

    A product of a query and a key then depends on the distance of their places only. Self-attention turns both;
    cross-attention turns neither, since places of two languages have no common distance.
    """

    table_2TE: Tensor

    def __init__(self, head_width: int, length: int = 512) -> None:
        super().__init__()
        self.head_width = head_width
        self.register_buffer("table_2TE", turns(length, head_width), persistent=False)

    def rotate(self, x_BHTE: Tensor, start: int = 0) -> Tensor:
        """Each vector turned by its place, the first of which is `start`."""
        end = start + x_BHTE.size(2)
        if end > self.table_2TE.size(1):
            with torch.inference_mode(False):  # a table made while translating must serve training too
                self.table_2TE = turns(2 * end, self.head_width).to(self.table_2TE)
        cos_TE, sin_TE = self.table_2TE[:, start:end].to(x_BHTE.dtype)
        left, right = x_BHTE.chunk(2, dim=-1)
        return x_BHTE * cos_TE + torch.cat([right, left], dim=-1) * sin_TE


def turns(length: int, width: int) -> Tensor:
    """Cosines of the first `length` positions, and sines with the signs of a rotation, in float64 till the end."""
    position_T1 = torch.arange(length, dtype=torch.float64, device="cpu")[:, None]
    angle_TF = position_T1 * torch.pow(10000.0, -torch.arange(0, width, 2, dtype=torch.float64, device="cpu") / width)
    cos_TE = torch.cat([angle_TF.cos(), angle_TF.cos()], dim=-1)
    sin_TE = torch.cat([-angle_TF.sin(), angle_TF.sin()], dim=-1)
    return torch.stack([cos_TE, sin_TE]).to(torch.get_default_dtype())
