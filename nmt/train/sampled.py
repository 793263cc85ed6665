"""Training pairs whose text is cut into other subwords in every epoch (Provilkov et al. 2020).

The pieces of an epoch are drawn once, ahead of it, and written as shards like those of the stage bpe; batches are then
planned with the lengths that there really are. They are a function of seed, epoch, side and row: whoever asks, however
often, on how many processes. The epoch after is drawn in the background.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from nmt.batches.ahead import Place, Update
from nmt.batches.drawn import Drawing, Side, Task, draw_all
from nmt.batches.shards import Shard
from nmt.train.data import Order, Pairs
from nmt.train.ranks import Ranks
from nmt.train.seeds import derive

SMALL = 5000  # pairs that are drawn at once, which takes less time than to start a process


class Epochs:
    """The shards of epochs, in a folder of their own; rank 0 makes them, and all read them."""

    def __init__(self, folder: Path, sides: Mapping[str, Side], dropout: float, seed: int, ranks: Ranks) -> None:
        self.folder = folder
        self._sides = sides
        self._dropout, self._seed = dropout, seed
        self._ranks = ranks
        self._small = len(Shard.open(next(iter(sides.values())).plain)) <= SMALL
        self._coming: tuple[int, Drawing] | None = None

    def take(self, epoch: int) -> tuple[Shard, Shard]:
        """The source and target shards of `epoch`. All processes call this, in the same order. Raises DataError."""
        self._ranks.first(lambda: self._make(epoch))
        source, target = (Shard.open(self._path(epoch, side)) for side in self._sides)
        return source, target

    def close(self) -> None:
        """End what goes on in the background, and remove the files."""
        if self._ranks.leads:
            self._stop()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _make(self, epoch: int) -> None:
        if self._coming is None or self._coming[0] != epoch:
            self._stop()
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            if self._small:
                return draw_all(self._tasks(epoch))
            self._coming = epoch, Drawing(self._tasks(epoch))
        drawing, self._coming = self._coming[1], None
        drawing.wait()
        for side in self._sides:
            self._path(epoch - 1, side).unlink(missing_ok=True)
        self._coming = epoch + 1, Drawing(self._tasks(epoch + 1))

    def _stop(self) -> None:
        if self._coming:
            self._coming[1].stop()
            self._coming = None

    def _tasks(self, epoch: int) -> list[Task]:
        return [
            (side, self._path(epoch, name), self._dropout, derive(self._seed, f"{name} {epoch}"))
            for name, side in self._sides.items()
        ]

    def _path(self, epoch: int, side: str) -> Path:
        return self.folder / f"epoch-{epoch + 1:05d}.{side}"


@contextmanager
def epochs(folder: Path, sides: Mapping[str, Side], dropout: float, seed: int, ranks: Ranks) -> Iterator[Epochs]:
    """The epochs' shards, of which nothing is left after the block."""
    made = Epochs(folder, sides, dropout, seed, ranks)
    try:
        yield made
    finally:
        made.close()


class SampledPairs(Pairs):
    """Pairs that are other ids in every epoch; `order_of` plans batches of sentences with the lengths given to it."""

    def __init__(self, plain: Pairs, made: Epochs, order_of: Callable[[np.ndarray, np.ndarray], Order]) -> None:
        super().__init__(plain.source, plain.target, plain.order, bos=plain.bos, eos=plain.eos, pad=plain.pad)
        self._made, self._order_of = made, order_of
        self._epoch: int | None = None

    def updates(self, epoch: int, group: int = 0) -> list[Update]:
        """The updates of a group of an epoch, whose ids `load` gives until another epoch is asked for."""
        if self._epoch != epoch:
            self.source, self.target = source, target = self._made.take(epoch)
            self.order, self._epoch = self._order_of(source.lengths, target.lengths), epoch
        return super().updates(epoch, group)

    def _following(self, place: Place) -> Place | None:
        """The next group of this epoch: the lengths of the next are not known yet."""
        epoch, group = place
        return (epoch, group + 1) if group + 1 < self.groups else None
