"""Dropout (Srivastava et al. 2014), cheap on processors too."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from nmt.model.kernels import rows

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
        if x.device.type == "cpu" and not torch.compiler.is_compiling():  # a compiler knows torch's own only
            return x * thin(x, self.p)
        return nn.functional.dropout(x, self.p)

    def added(self, x: Tensor, y: Tensor) -> Tensor:
        """x + what is left of `y`."""
        if self.training and self.p > 0 and rows.suits(x, y):
            return rows.sum_thinned(x, y, *draw(y, self.p))
        return x + self(y)

    def extra_repr(self) -> str:
        """The probability, for the model's printed form."""
        return f"p={self.p}"


def thin(x: Tensor, p: float) -> Tensor:
    """A factor for every number of `x`: zero with probability `p`, rounded to 1/65536, else what keeps the mean."""
    levels, bound, factor = draw(x, p)
    return levels.ge_(bound).to(x.dtype).mul_(factor)


def draw(x: Tensor, p: float) -> tuple[Tensor, int, float]:
    """16-bit integers, one for every number of `x`, the least of those that keep it, and the factor of what is kept.

    One draw of torch's generator seeds a generator of NumPy's that is much faster than torch's on a processor, and each
    of its draws makes four integers. They stay such as long as possible: booleans are slow to convert.
    """
    drop = min(round(p * LEVELS), LEVELS - 1)
    seed = int(torch.randint(2**63 - 1, ()))
    draws = np.random.SFC64(seed).random_raw((x.numel() + 3) // 4)
    levels = torch.from_numpy(draws.view(np.int16))[: x.numel()]  # from -LEVELS / 2 to LEVELS / 2 - 1, all alike
    return levels.view(x.shape), drop - LEVELS // 2, LEVELS / (LEVELS - drop)
