"""Pairs of id sequences, in the order and the batches that training takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch

from nmt.batches.ahead import Ahead, Place, Update
from nmt.batches.batch import Batch, collate
from nmt.batches.shards import Shard


class Order(Protocol):
    """Which rows make which update of an epoch: nmt.batches.buckets.BatchOrder."""

    @property
    def groups(self) -> int:
        """How many groups an epoch has."""
        ...

    def group(self, epoch: int, number: int) -> list[Update]:
        """The updates of one group of an epoch: a pure function of these numbers."""
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
        self._ahead = Ahead(self._plan, self._following)

    @property
    def groups(self) -> int:
        """How many groups an epoch has; only very many pairs have more than one."""
        return self.order.groups

    def updates(self, epoch: int, group: int = 0) -> list[Update]:
        """The updates of a group of an epoch, kept until another is asked for; the next one is planned meanwhile."""
        return self._ahead.take((epoch, group))

    def _plan(self, epoch: int, group: int) -> list[Update]:
        return self.order.group(epoch, group)

    def _following(self, place: Place) -> Place | None:
        """What is asked for after a group."""
        epoch, group = place
        return (epoch, group + 1) if group + 1 < self.groups else (epoch + 1, 0)

    def load(self, rows: np.ndarray) -> Batch:
        """These pairs as one padded batch; of no pairs, one without labels, whose loss and gradient are nothing."""
        if not len(rows):
            batch = collate([[]], [[]], bos=self.bos, eos=self.eos, pad=self.pad)
            return replace(batch, out_BT=torch.full_like(batch.out_BT, self.pad), tokens=0)
        return collate(
            _taken(self.source, rows),
            _taken(self.target, rows),
            bos=self.bos,
            eos=self.eos,
            pad=self.pad,
        )


def _taken(sequences: Sequences, rows: np.ndarray) -> Sequence[np.ndarray]:
    return sequences.take(rows) if isinstance(sequences, Shard) else [sequences[int(row)] for row in rows]
