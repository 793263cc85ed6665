"""A random order of very many numbers, of which any part can be asked for without the rest."""

from __future__ import annotations

import math

import numpy as np

_ROUNDS = 6


class Shuffle:
    """The numbers below `count` in a random order, which takes memory for the root of as many.

    A number is written in two digits, each of which is moved on in turn by as much as a table says for the other one.
    That can be undone, so no two numbers become the same: a Feistel network over digits (Black & Rogaway 2002).
    """

    def __init__(self, count: int, generator: np.random.Generator) -> None:
        self._count = count
        first = max(1, math.isqrt(count))
        self._bases = first, max(1, -(-count // first))
        self._tables = [
            generator.integers(0, self._bases[turn % 2], self._bases[1 - turn % 2]) for turn in range(_ROUNDS)
        ]

    def take(self, places: np.ndarray) -> np.ndarray:
        """The numbers at some places of the order, as int64."""
        numbers = self._moved(np.asarray(places, dtype=np.int64))
        while len(beyond := np.flatnonzero(numbers >= self._count)):  # two digits may count a little further
            numbers[beyond] = self._moved(numbers[beyond])
        return numbers

    def _moved(self, numbers: np.ndarray) -> np.ndarray:
        digits = list(np.divmod(numbers, self._bases[1]))
        for turn, table in enumerate(self._tables):
            own = turn % 2
            digits[own] = (digits[own] + table[digits[1 - own]]) % self._bases[own]
        return digits[0] * self._bases[1] + digits[1]
