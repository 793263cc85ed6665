"""Pairs of id sequences, in the order and the batches that training takes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
import torch

from nmt.batches.batch import Batch, collate

Update = list[np.ndarray]


class Order(Protocol):
    """Which rows make which update of an epoch: nmt.batches.buckets.BatchOrder."""

    def updates(self, epoch: int) -> list[Update]:
        """The updates of an epoch: a pure function of its number."""
        ...


class Sequences(Protocol):
    """Sequences of ids by their number: a shard, or a list of arrays."""

    def __getitem__(self, index: int, /) -> np.ndarray:
        """The ids of one sentence, without marks."""
        ...


class Pairs:
    """Source and target sequences, their order, and the ids that mark begin, end and padding."""

    def __init__(self, source: Sequences, target: Sequences, order: Order, *, bos: int, eos: int, pad: int) -> None:
        self.source = source
        self.target = target
        self.order = order
        self.bos, self.eos, self.pad = bos, eos, pad
        self._epoch: tuple[int, list[Update]] | None = None

    def updates(self, epoch: int) -> list[Update]:
        """The updates of an epoch, kept until another epoch is asked for."""
        if self._epoch is None or self._epoch[0] != epoch:
            self._epoch = epoch, self.order.updates(epoch)
        return self._epoch[1]

    def load(self, rows: np.ndarray) -> Batch:
        """These pairs as one padded batch; of no pairs, one without labels, whose loss and gradient are nothing."""
        if not len(rows):
            batch = collate([[]], [[]], bos=self.bos, eos=self.eos, pad=self.pad)
            return replace(batch, out_BT=torch.full_like(batch.out_BT, self.pad), tokens=0)
        return collate(
            [self.source[int(row)] for row in rows],
            [self.target[int(row)] for row in rows],
            bos=self.bos,
            eos=self.eos,
            pad=self.pad,
        )
