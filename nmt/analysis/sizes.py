"""How long a run's training sentences are, and how much of its text the commonest pieces make up, as charts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nmt.analysis.charts import Point, Series, chart
from nmt.analysis.markup import Markup, tag
from nmt.batches.shards import Shard
from nmt.errors import DataError
from nmt.wording import counted

SIDES = ("source", "target")
POINTS = 200


def sizes(run: Path) -> Markup:
    """Both charts of the run folder `run`; nothing where its training text is not cut into pieces yet, or damaged."""
    try:
        shards = {side: Shard.open(run / "shards" / f"train.{side}") for side in SIDES}
    except DataError:
        return Markup()
    pairs = len(shards["source"])
    if not pairs:
        return Markup()
    lengths = [Series(side, length_curve(shard.lengths), i) for i, (side, shard) in enumerate(shards.items())]
    ranks = [Series(side, coverage_curve(shard.counts()), i) for i, (side, shard) in enumerate(shards.items())]
    pieces = sum(int(shard.lengths.sum()) for shard in shards.values())
    return tag(
        "div",
        chart(f"Lengths of training sentences, in % (n = {counted(pairs, 'pair')})", lengths, "pieces"),
        chart(f"Share of the training text, in %, that the commonest pieces make up (n = {pieces:,})", ranks, "pieces"),
        class_="charts",
    )


def length_curve(lengths: np.ndarray) -> list[Point]:
    """The percentage of sentences of each length, up to one that 99.5 in 100 do not exceed."""
    longest = int(np.quantile(lengths, 0.995)) if len(lengths) else 0
    counts = np.bincount(lengths, minlength=longest + 1)[: longest + 1]
    return [(float(length), 100.0 * count / len(lengths)) for length, count in enumerate(counts.tolist())]


def coverage_curve(counts: np.ndarray) -> list[Point]:
    """For a growing number of pieces, the commonest first, the percentage of all occurrences that they are."""
    common = np.sort(counts[counts > 0])[::-1]
    shares = 100 * np.cumsum(common) / max(int(common.sum()), 1)
    shown = np.unique(np.geomspace(1, max(len(common), 1), POINTS).astype(int))
    return [(0.0, 0.0), *((float(rank), float(shares[rank - 1])) for rank in shown if rank <= len(common))]
