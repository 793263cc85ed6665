"""Dropout (Srivastava et al. 2014), cheap on processors too."""

from __future__ import annotations

import torch
from torch import Tensor, nn

LEVELS = 1 << 16  # a number to compare has 16 bits


class Dropout(nn.Module):
    """Sets each number to zero with probability `p` while training, and scales the others so that the mean stays."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """The same shape, thinned out."""
        if not self.training or self.p == 0:
            return x
        return x * thin(x, self.p) if x.device.type == "cpu" else nn.functional.dropout(x, self.p)

    def extra_repr(self) -> str:
        """The probability, for the model's printed form."""
        return f"p={self.p}"


def thin(x: Tensor, p: float) -> Tensor:
    """A factor for every number of `x`: zero with probability `p`, rounded to 1/65536, else what keeps the mean.

    Four factors come from each draw of torch's generator. One draw a number, as torch's own dropout makes on a
    processor, takes twice the time, and was a fourteenth of a training step.
    """
    drop = min(round(p * LEVELS), LEVELS - 1)
    draws = torch.randint(-(2**63), 2**63 - 1, ((x.numel() + 3) // 4,), dtype=torch.int64, device=x.device)
    bits = draws.view(torch.int16)[: x.numel()].view(x.shape)  # from -LEVELS / 2 to LEVELS / 2 - 1, all alike
    return (bits >= drop - LEVELS // 2).to(x.dtype).mul_(LEVELS / (LEVELS - drop))
