"""Which rows an epoch has: those of every corpus as often as it weighs, at once or in groups.

What is left of a weight beyond whole numbers is a share of the corpus, a stretch of its pairs in a seeded order that
is the same in all epochs; the next epoch's begins where this one's ends.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from nmt.batches.kept import Kept
from nmt.batches.shuffle import Shuffle


class Rows:
    """The rows of each epoch, in groups of about `most` rows, where there are more rows, or pairs, than that.

    `corpora` holds (pairs, weight) of consecutive ranges of the rows, of which only those `kept` count. A group is a
    random part of the epoch, and takes neither the time nor the memory of the others.
    """

    def __init__(self, kept: Kept, corpora: Sequence[tuple[int, float]], seed: int, most: int) -> None:
        self._kept, self._seed = kept, seed
        bounds = [kept.before(end) for end in np.cumsum([0, *(pairs for pairs, _ in corpora)]).tolist()]
        self._corpora = [
            (start, end - start, weight)
            for start, end, (_, weight) in zip(bounds[:-1], bounds[1:], corpora, strict=True)
        ]
        usual = round(sum(count * weight for _, count, weight in self._corpora))
        self.whole = max(usual, len(kept)) <= most
        """Whether all rows of an epoch are one group, made at once."""
        self.groups = 1 if self.whole else max(1, -(-usual // most))

    def generator(self, purpose: str, *numbers: int) -> np.random.Generator:
        """Random numbers for one purpose."""
        return np.random.default_rng([self._seed, zlib.crc32(purpose.encode()), *numbers])

    def of(self, epoch: int, group: int) -> np.ndarray:
        """The rows of one group of an epoch, as int64; at least one where there are any at all."""
        rows = self._at_once(epoch) if self.whole else self._in_groups(epoch, group)
        return rows if len(rows) or self.groups > 1 else self._due(epoch)

    def _due(self, epoch: int) -> np.ndarray:
        """What an epoch has for which all weights are too small: a row of the corpus that is the first to have one."""
        wait: list[tuple[float, int]] = []
        for number, (_, count, weight) in enumerate(self._corpora):
            if count:
                each = weight % 1.0 * count
                wait.append(((round(epoch * each) + 0.5) / each - epoch, number))
        if not wait:
            return np.zeros(0, dtype=np.int64)
        number = min(wait)[1]
        _, count, weight = self._corpora[number]
        return self._looked_up(number, round(epoch * (weight % 1.0) * count), np.arange(1))

    def _at_once(self, epoch: int) -> np.ndarray:
        parts = [np.zeros(0, dtype=np.int64)]
        for number, (first, count, weight) in enumerate(self._corpora):
            rows = self._kept.rows(np.arange(first, first + count))
            whole, share = divmod(weight, 1.0)
            parts.extend([rows] * int(whole))
            if share:
                shuffled = self.generator("weights", number).permutation(rows)
                start, end = (round(at * share * count) for at in (epoch, epoch + 1))
                parts.append(shuffled[np.arange(start, end) % max(count, 1)])
        return np.concatenate(parts)

    def _in_groups(self, epoch: int, group: int) -> np.ndarray:
        """Places in a row of all that the epoch has are dealt out at random; each is then looked up."""
        stretches = [
            (number, part, length)
            for number in range(len(self._corpora))
            for part, length in self._parts(number, epoch)
        ]
        ends = np.cumsum([length for _, _, length in stretches])
        total = int(ends[-1])
        start, end = (at * total // self.groups for at in (group, group + 1))
        places = np.sort(Shuffle(total, self.generator("groups", epoch)).take(np.arange(start, end)))
        rows = []
        for (number, part, length), last in zip(stretches, ends, strict=True):
            first = last - length
            here = places[slice(*np.searchsorted(places, (first, last)))] - first
            rows.append(self._looked_up(number, part, here))
        return np.concatenate(rows)

    def _parts(self, number: int, epoch: int) -> list[tuple[int | None, int]]:
        """The stretches of a corpus in an epoch: None for all of it, or where a share begins; with their lengths."""
        _, count, weight = self._corpora[number]
        whole, share = divmod(weight, 1.0)
        start, end = (round(at * share * count) for at in (epoch, epoch + 1))
        return [*[(None, count)] * int(whole), *([(start, end - start)] if share else [])]

    def _looked_up(self, number: int, start: int | None, places: np.ndarray) -> np.ndarray:
        first, count, _ = self._corpora[number]
        if start is not None and len(places):
            order = Shuffle(count, self.generator("weights", number))
            places = np.sort(order.take((start + places) % count))
        return self._kept.rows(first + places)
