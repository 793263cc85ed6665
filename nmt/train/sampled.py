"""Training pairs whose text is cut into other subwords in every epoch (Kudo 2018; Provilkov et al. 2020).

The pieces of an epoch are drawn once, ahead of it, and written as shards like those of the stage bpe; batches are then
planned with the lengths that there really are. They are a function of seed, epoch, side and the text: whoever asks,
however often, on how many processes. The epoch after is drawn in the background.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from nmt.batches.shards import Shard, open_shard
from nmt.corpus.lines import read_lines
from nmt.errors import DataError
from nmt.subwords.vocabulary import Vocabulary
from nmt.train.data import Order, Pairs, Update
from nmt.train.ranks import Ranks
from nmt.train.seeds import derive

ROWS = 1024  # sentences drawn from one seed

Sides = Mapping[str, "Side"]


@dataclass(frozen=True)
class Side:
    """One language of the training text, and what its sentences become without sampling."""

    text: Path
    vocabulary: Vocabulary
    plain: Shard
    longest: int
    """Most pieces that a sentence may have, the end mark not counted."""

    def write(self, path: Path, alpha: float, seed: int, stopped: Callable[[], bool] = lambda: False) -> None:
        """Draw pieces for every sentence into the shard `path`; `seed` is that of epoch and side.

        A sentence whose pieces would be too many takes the plain ones, and so does one that is too long anyway: the
        pairs left out for their length are always the same. Raises DataError when the text has changed.
        """
        lines, row = read_lines(self.text), 0
        with open_shard(path, len(self.vocabulary)) as writer:
            while (texts := list(islice(lines, ROWS))) and not stopped():
                if row + len(texts) > len(self.plain):
                    break
                drawn = self.vocabulary.sample_many(texts, alpha, derive(seed, str(row // ROWS)))
                plain = self.plain.lengths[row : row + len(texts)]
                fits = [max(len(ids), int(length)) <= self.longest for ids, length in zip(drawn, plain, strict=True)]
                writer.add(
                    [
                        ids if fit else self.plain[row + i].tolist()
                        for i, (ids, fit) in enumerate(zip(drawn, fits, strict=True))
                    ]
                )
                row += len(texts)
        if not stopped() and (texts or row != len(self.plain)):
            raise DataError(
                f"{self.text}: its lines are not those that {self.plain.path} was made of", "run nmt bpe RECIPE again"
            )


class Epochs:
    """The shards of epochs, in a folder of their own; rank 0 makes them, and all read them."""

    def __init__(self, folder: Path, sides: Sides, alpha: float, seed: int, ranks: Ranks) -> None:
        self.folder = folder
        self._sides = sides
        self._alpha, self._seed = alpha, seed
        self._ranks = ranks
        self._background = ThreadPoolExecutor(1, "subwords")
        self._coming: dict[int, Future[None]] = {}
        self._stopped = threading.Event()

    def take(self, epoch: int) -> tuple[Shard, Shard]:
        """The source and target shards of `epoch`. All processes call this, in the same order. Raises DataError."""
        self._ranks.first(lambda: self._made(epoch))
        source, target = (Shard.open(self._path(epoch, side)) for side in self._sides)
        return source, target

    def close(self) -> None:
        """End what goes on in the background, and remove the files."""
        self._stopped.set()
        self._background.shutdown()
        if self._ranks.leads:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _made(self, epoch: int) -> None:
        self._begin(epoch).result()
        for old in [number for number in self._coming if number != epoch]:
            self._coming.pop(old).result()
            for side in self._sides:
                self._path(old, side).unlink(missing_ok=True)
        self._begin(epoch + 1)

    def _begin(self, epoch: int) -> Future[None]:
        if epoch not in self._coming:
            self._coming[epoch] = self._background.submit(self._write, epoch)
        return self._coming[epoch]

    def _write(self, epoch: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, side in self._sides.items():
            if not self._stopped.is_set():
                seed = derive(self._seed, f"{name} {epoch}")
                side.write(self._path(epoch, name), self._alpha, seed, self._stopped.is_set)

    def _path(self, epoch: int, side: str) -> Path:
        return self.folder / f"epoch-{epoch + 1:05d}.{side}"


@contextmanager
def epochs(folder: Path, sides: Sides, alpha: float, seed: int, ranks: Ranks) -> Iterator[Epochs]:
    """The epochs' shards, of which nothing is left after the block."""
    made = Epochs(folder, sides, alpha, seed, ranks)
    try:
        yield made
    finally:
        made.close()


class SampledPairs(Pairs):
    """Pairs that are other ids in every epoch; `order_of` plans batches of sentences with the lengths given to it."""

    def __init__(self, plain: Pairs, made: Epochs, order_of: Callable[[np.ndarray, np.ndarray], Order]) -> None:
        super().__init__(plain.source, plain.target, plain.order, bos=plain.bos, eos=plain.eos, pad=plain.pad)
        self._made, self._order_of = made, order_of

    def updates(self, epoch: int) -> list[Update]:
        """The updates of an epoch, whose ids `load` gives until another epoch is asked for."""
        if self._epoch is None or self._epoch[0] != epoch:
            self.source, self.target = source, target = self._made.take(epoch)
            self.order = self._order_of(source.lengths, target.lengths)
        return super().updates(epoch)
