"""Learning rates over updates. Update n, counted from 1, uses schedule(n)."""

from __future__ import annotations

import math
from collections.abc import Callable

Schedule = Callable[[int], float]


def paper(width: int, warmup: int, factor: float = 1.0) -> Schedule:
    """factor · width^-0.5 · min(n^-0.5, n · warmup^-1.5) (Vaswani et al. 2017, §5.3): its peak is at n = warmup."""
    return lambda n: factor * width**-0.5 * min(n**-0.5, n * warmup**-1.5)


def constant(peak: float, warmup: int) -> Schedule:
    """peak · min(1, n / warmup)."""
    return lambda n: peak * _rise(n, warmup)


def linear(peak: float, floor: float, warmup: int, steps: int) -> Schedule:
    """Rises to `peak` at n = warmup, falls on a line to `floor` at n = steps, and stays there."""
    return lambda n: peak * _rise(n, warmup) if n <= warmup else floor + (peak - floor) * (1 - _fall(n, warmup, steps))


def cosine(peak: float, floor: float, warmup: int, steps: int) -> Schedule:
    """Rises to `peak` at n = warmup, falls on half a cosine to `floor` at n = steps, and stays there."""

    def rate(n: int) -> float:
        if n <= warmup:
            return peak * _rise(n, warmup)
        return floor + (peak - floor) * (1 + math.cos(math.pi * _fall(n, warmup, steps))) / 2

    return rate


def _rise(n: int, warmup: int) -> float:
    return min(1.0, n / warmup) if warmup else 1.0


def _fall(n: int, warmup: int, steps: int) -> float:
    """How much of the way from the warmup's end to the last update is done: 0 to 1."""
    return min(1.0, (n - warmup) / max(1, steps - warmup))
