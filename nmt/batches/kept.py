"""Which of very many rows are kept: a bit for each, and the rows by their number among those kept."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_BLOCK = 1 << 16  # rows looked at together


class Kept:
    """Those of `rows` rows of which `keep(start, end)` says so, block by block."""

    def __init__(self, rows: int, keep: Callable[[int, int], np.ndarray]) -> None:
        bits, counts = [np.zeros(0, dtype=np.uint8)], [0]
        for start in range(0, rows, _BLOCK):
            block = keep(start, min(start + _BLOCK, rows))
            bits.append(np.packbits(block))
            counts.append(int(block.sum()))
        self._bits = np.concatenate(bits)
        self._before = np.cumsum(counts)
        self._rows = rows

    def __len__(self) -> int:
        return int(self._before[-1])

    def before(self, row: int) -> int:
        """How many are kept of the rows before this one."""
        block, rest = divmod(row, _BLOCK)
        return int(self._before[block]) + (int(self._block(block)[:rest].sum()) if rest else 0)

    def rows(self, numbers: np.ndarray) -> np.ndarray:
        """The rows that are kept as number 0, 1, …; `numbers` ascend."""
        found = np.empty(len(numbers), dtype=np.int64)
        ends = np.searchsorted(numbers, self._before)
        for block in np.flatnonzero(np.diff(ends)).tolist():
            here = slice(ends[block], ends[block + 1])
            found[here] = np.flatnonzero(self._block(block))[numbers[here] - self._before[block]] + block * _BLOCK
        return found

    def _block(self, number: int) -> np.ndarray:
        start = number * _BLOCK
        end = min(start + _BLOCK, self._rows)
        return np.unpackbits(self._bits[start // 8 : (end + 7) // 8], count=end - start)
