"""Memory that the steps of a thread use again and again: new memory would have to be asked of the system, page by page.

R rows · W width
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

Numbers = np.ndarray[Any, Any]


class Buffer(NamedTuple):
    """The same memory, as torch and as numpy see it."""

    tensor_RW: Tensor
    array_RW: Numbers


class Buffers(threading.local):
    """For each width and type, rows that are overwritten when rows of that width and type are next asked for."""

    def __init__(self) -> None:
        self.whole: dict[tuple[int, torch.dtype], Tensor] = {}
        self.taken: dict[tuple[int, torch.dtype], Buffer] = {}

    def take(self, rows: int, width: int, dtype: torch.dtype) -> Buffer:
        """Room for `rows` rows; what it holds is any numbers."""
        kind = width, dtype
        taken = self.taken.get(kind)
        if taken is not None and len(taken.array_RW) == rows:
            return taken
        whole_RW = self.whole.get(kind)
        if whole_RW is None or len(whole_RW) < rows:
            with torch.inference_mode(False):  # who asks next may not be in it
                whole_RW = self.whole[kind] = torch.empty(rows, width, dtype=dtype)
        tensor_RW = whole_RW[:rows]
        taken = self.taken[kind] = Buffer(tensor_RW, tensor_RW.numpy())
        return taken
