"""What is still held in memory, to find what grows."""

from __future__ import annotations

import gc

import torch


def held() -> tuple[int, int]:
    """How many tensors there are, and how many other objects that may hold something."""
    gc.collect()
    kinds = [issubclass(type(thing), torch.Tensor) for thing in gc.get_objects()]
    return sum(kinds), len(kinds) - sum(kinds)
