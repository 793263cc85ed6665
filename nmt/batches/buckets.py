"""Which pairs make up which batch: sentences of similar length under a budget of padded tokens, in a seeded order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nmt.batches.epoch import Rows
from nmt.batches.kept import Kept

_MOST_SHAKE = (
    0.1  # of a length; costs 3 % more batches on 29,000 pairs of 14 tokens, where pairs would else stay together
)


GROUP = 2_000_000  # pairs planned at once: some seconds and 300 MB, and ten thousand batches to train on meanwhile


class BatchOrder:
    """The batches of every epoch, a pure function of the arguments and the epoch's number.

    `source_lengths` and `target_lengths` count ids without the end mark; all limits count it. A batch has
    rows x longest row <= `batch_tokens` on either side. A pair longer than a limit, or than `batch_tokens` alone,
    is left out and counted in `skipped`; every other pair comes exactly once an epoch.
    `corpora` holds (pairs, weight) of consecutive ranges: weight 2 brings each pair twice an epoch, 0.5 a seeded half
    that moves on from epoch to epoch, so that two epochs bring all. Where weights leave nothing, an epoch is one pair.
    More pairs than `group` are planned in groups of about as many, each a random part of the epoch, without the others.
    Lengths are not copied: they may be memory-mapped.
    """

    def __init__(
        self,
        source_lengths: np.ndarray,
        target_lengths: np.ndarray,
        *,
        batch_tokens: int,
        accumulate: int,
        max_source_tokens: int,
        max_target_tokens: int,
        seed: int,
        corpora: Sequence[tuple[int, float]] = (),
        group: int = GROUP,
    ) -> None:
        if len(source_lengths) != len(target_lengths):
            raise ValueError(f"{len(source_lengths)} source lengths and {len(target_lengths)} target lengths")
        corpora = corpora or [(len(source_lengths), 1.0)]
        if sum(pairs for pairs, _ in corpora) != len(source_lengths):
            raise ValueError(f"the corpora hold {sum(n for n, _ in corpora)} pairs, the lengths {len(source_lengths)}")
        self._source, self._target = np.asarray(source_lengths), np.asarray(target_lengths)
        self._budget, self._accumulate = batch_tokens, accumulate
        most_source, most_target = (min(most, batch_tokens) - 1 for most in (max_source_tokens, max_target_tokens))

        def fits(start: int, end: int) -> np.ndarray:
            return (self._source[start:end] <= most_source) & (self._target[start:end] <= most_target)

        kept = Kept(len(source_lengths), fits)
        self.skipped = len(source_lengths) - len(kept)
        self._rows = Rows(kept, corpora, seed, group)

    @property
    def groups(self) -> int:
        """How many groups an epoch has."""
        return self._rows.groups

    @property
    def whole(self) -> bool:
        """Whether epochs are planned at once, since there are few pairs."""
        return self._rows.whole

    def updates(self, epoch: int) -> list[list[np.ndarray]]:
        """The updates of `epoch` (0, 1, …): up to `accumulate` batches each, a batch being an array of row numbers."""
        return [update for group in range(self.groups) for update in self.group(epoch, group)]

    def group(self, epoch: int, number: int) -> list[list[np.ndarray]]:
        """The updates of one group (0, 1, …) of an epoch; the last of them may have fewer batches."""
        place = (epoch,) if self.whole else (epoch, number)
        rows = self._by_length(self._rows.of(epoch, number), self._rows.generator("lengths", *place))
        batches = self._cut(rows)
        order = self._rows.generator("batches", *place).permutation(len(batches))
        starts = range(0, len(batches), self._accumulate)
        return [[batches[i] for i in order[start : start + self._accumulate]] for start in starts]

    def _by_length(self, rows: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """`rows` sorted by target length, then source length, in random order among near-equals."""
        rows = generator.permutation(rows)
        source, target = (lengths[rows].astype(np.int64) + 1 for lengths in (self._source, self._target))
        # Where batches are few, the same pairs would meet in every epoch: shake the lengths a little.
        shake = min(_MOST_SHAKE, 10 * self._budget / max(int(target.sum()), 1))
        source += (source * shake * generator.random(len(rows))).round().astype(np.int64)
        target += (target * shake * generator.random(len(rows))).astype(np.int64)
        # The source runs up and down in turn, so that neighbours at a step of the target are alike in both.
        span = int(source.max(initial=0)) + 1
        key = target * span + np.where(target % 2, source, span - 1 - source)
        return rows[np.argsort(key, kind="stable")]

    def _cut(self, rows: np.ndarray) -> list[np.ndarray]:
        """Consecutive `rows` as batches, each as large as the budget allows."""
        longest = np.maximum(self._source[rows], self._target[rows]).astype(np.int64) + 1
        batches, start = [], 0
        while start < len(rows):
            # No batch from here on can have more rows than the first alone would allow.
            window = longest[start : start + self._budget // int(longest[start])]
            cost = np.maximum.accumulate(window) * np.arange(1, len(window) + 1)
            count = int(np.searchsorted(cost, self._budget, side="right"))
            batches.append(rows[start : start + count])
            start += count
        return batches
