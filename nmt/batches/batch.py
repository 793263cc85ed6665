"""Padded tensors with keep masks.  B batch · S source · T target"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

Ids = Sequence[int] | np.ndarray


@dataclass(frozen=True)
class Batch:
    """Sentence pairs for one forward pass. Ids are int64; True in `keep_BS` marks what may be attended to."""

    src_BS: Tensor
    """Source ids, ending in eos, then padded."""
    keep_BS: Tensor
    """True where `src_BS` holds no padding."""
    tgt_BT: Tensor
    """What the decoder sees: bos, then the target ids, then padding."""
    out_BT: Tensor
    """What it is to predict: the target ids, ending in eos, then padding."""
    tokens: int
    """Labels that are no padding, end marks included."""

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on `device`."""
        src_BS, keep_BS = self.src_BS.to(device, non_blocking=True), self.keep_BS.to(device, non_blocking=True)
        tgt_BT, out_BT = self.tgt_BT.to(device, non_blocking=True), self.out_BT.to(device, non_blocking=True)
        return Batch(src_BS, keep_BS, tgt_BT, out_BT, self.tokens)

    def pinned(self) -> Self:
        """The same batch in memory that a GPU reads by itself, so that `to` does not wait."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        there: Any = {name: value.pin_memory() for name, value in values.items() if isinstance(value, Tensor)}
        return replace(self, **there)

    def halves(self, pad: int) -> tuple[Batch, Batch]:
        """The first and the second half of the rows, each padded to its own longest sentence."""
        middle = (len(self.src_BS) + 1) // 2
        return self._rows(slice(middle), pad), self._rows(slice(middle, None), pad)

    def _rows(self, rows: slice, pad: int) -> Batch:
        keep_BS, real_BT = self.keep_BS[rows], self.out_BT[rows] != pad
        source, target = (int(real.sum(1).max()) for real in (keep_BS, real_BT))
        tgt_BT, out_BT = self.tgt_BT[rows, :target], self.out_BT[rows, :target]
        return Batch(self.src_BS[rows, :source], keep_BS[:, :source], tgt_BT, out_BT, int(real_BT.sum()))


def collate(source: Sequence[Ids], target: Sequence[Ids], *, bos: int, eos: int, pad: int) -> Batch:
    """Pairs of id sequences, without marks, as one batch. Needs at least one pair."""
    if len(source) != len(target):
        raise ValueError(f"{len(source)} sources and {len(target)} targets")
    src_BS, keep_BS = collate_source(source, eos=eos, pad=pad)
    out_BT, real_BT = _padded(target, eos, pad)
    tgt_BT = np.full_like(out_BT, pad)
    tgt_BT[:, 0] = bos
    tgt_BT[:, 1:][real_BT[:, 1:]] = out_BT[:, :-1][real_BT[:, 1:]]
    return Batch(src_BS, keep_BS, torch.from_numpy(tgt_BT), torch.from_numpy(out_BT), int(real_BT.sum()))


def collate_source(sequences: Sequence[Ids], *, eos: int, pad: int) -> tuple[Tensor, Tensor]:
    """Source id sequences, without marks, as `src_BS` and `keep_BS`. Needs at least one sequence."""
    src_BS, keep_BS = _padded(sequences, eos, pad)
    return torch.from_numpy(src_BS), torch.from_numpy(keep_BS)


def _padded(sequences: Sequence[Ids], eos: int, pad: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of ids, each with `eos` after it and `pad` after that; and where they are no padding."""
    if not len(sequences):
        raise ValueError("a batch needs at least one sentence")
    lengths = np.fromiter(map(len, sequences), dtype=np.int64, count=len(sequences))
    columns = np.arange(int(lengths.max()) + 1)
    rows = np.full((len(sequences), len(columns)), pad, dtype=np.int64)
    rows[columns < lengths[:, None]] = np.concatenate([np.asarray(ids, dtype=np.int64) for ids in sequences])
    rows[np.arange(len(sequences)), lengths] = eos
    return rows, columns <= lengths[:, None]
