"""What each head does over a corpus, measured, beside what a head would do that looks at everything alike.

L layers · B batch · H heads · Q queries · K keys
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from nmt.analysis.capture import Kind
from nmt.analysis.words import is_punctuation
from nmt.batches.batch import Batch
from nmt.subwords.vocabulary import Vocabulary

OFFSETS = range(-4, 5)
"""Distances from query to key that are tried for `Head.offset`."""
SURE = 1.96  # standard errors to either side hold 95 % of a normal distribution


@dataclass(frozen=True)
class Measures:
    """Means over all rows of a corpus, for one head or for uniform weights. Shares are of a row's weight of 1."""

    entropy: float
    """Of a row, in nats: 0 where one key gets all."""
    confidence: float
    """The largest weight of a row."""
    first: float
    """Share of the first key."""
    end: float
    """Share of the source's end mark; decoder self-attention has none to see."""
    punctuation: float
    """Share of pieces that are punctuation."""
    offset: int
    """The distance from query to key, key minus query, that gets most."""
    offset_share: float
    """The share of keys at that distance; rows without one count as 0."""
    offset_half_width: float = 0.0
    """Half of the 95 % interval of `offset_share` over sentences; 0 for uniform weights."""


@dataclass
class Totals:
    """Sums over the rows of one kind of attention, to be divided by their number."""

    rows: int = 0
    squared_rows: float = 0.0
    """The sum over sentences of their rows squared."""
    heads: dict[str, Tensor] = field(default_factory=dict)
    """Of each measure, LH."""
    uniform: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, sum_LH: Tensor, uniform: Tensor) -> None:
        """Take in the sums of some rows."""
        self.heads[name] = self.heads[name] + sum_LH if name in self.heads else sum_LH
        self.uniform[name] = self.uniform.get(name, 0.0) + float(uniform)

    def of_head(self, layer: int, head: int) -> Measures:
        """The means of one head."""
        means = {name: float(sum_LH[layer, head]) / self.rows for name, sum_LH in self.heads.items()}
        found = _measures(means)
        return replace(found, offset_half_width=self._half_width(means, f"offset {found.offset}"))

    def _half_width(self, means: Mapping[str, float], name: str) -> float:
        """Half of the 95 % interval of a share, sentences being drawn: a ratio of sums, by its linear expansion."""
        share = means[name]
        spread = means[f"{name} squared"] - 2 * share * means[f"{name} by rows"]
        return SURE * math.sqrt(max(spread * self.rows + share**2 * self.squared_rows, 0.0)) / self.rows

    def of_uniform(self, like: Measures | None = None) -> Measures:
        """The means that uniform weights would have; the offset is that of `like`, or their own best."""
        means = {name: value / self.rows for name, value in self.uniform.items()}
        return _measures(means, None if like is None else like.offset)


@dataclass(frozen=True)
class Pieces:
    """What is to be known about the vocabularies: which ids are punctuation."""

    source: Tensor
    target: Tensor

    @classmethod
    def of(cls, source: Vocabulary, target: Vocabulary) -> Pieces:
        """From the pieces' own text."""
        return cls(*(torch.tensor([is_punctuation(v.piece(i)) for i in range(len(v))]) for v in (source, target)))


def tally(totals: Mapping[Kind, Totals], weights: Mapping[Kind, Tensor], batch: Batch, pieces: Pieces) -> None:
    """Add the rows of a captured batch, padding left aside, to `totals`. All tensors on the CPU."""
    written_BT, keep_BS = batch.out_BT != Vocabulary.pad, batch.keep_BS
    length = batch.tgt_BT.size(1)
    past_BQK = torch.ones(length, length, dtype=torch.bool).tril()[None] & written_BT[:, :, None]
    end_BK = keep_BS & ~torch.nn.functional.pad(keep_BS, (0, 1))[:, 1:]
    source_marks, target_marks = pieces.source[batch.src_BS], pieces.target[batch.tgt_BT]
    views: dict[Kind, tuple[Tensor, Tensor, Tensor]] = {
        "encoder": (keep_BS[:, :, None] & keep_BS[:, None], source_marks, end_BK),
        "decoder": (past_BQK, target_marks, torch.zeros_like(written_BT)),
        "cross": (written_BT[:, :, None] & keep_BS[:, None], source_marks, end_BK),
    }
    for kind, view in views.items():
        _tally(totals[kind], weights[kind].double(), *view)


def _tally(totals: Totals, weights_LBHQK: Tensor, visible_BQK: Tensor, marks_BK: Tensor, end_BK: Tensor) -> None:
    rows_BQ = visible_BQK.any(-1)
    real = rows_BQ.double()
    count_BQ = visible_BQK.sum(-1).clamp_min(1).double()
    totals.rows += int(rows_BQ.sum())
    entropy_LBHQ = -torch.xlogy(weights_LBHQK, weights_LBHQK).sum(-1)
    totals.add("entropy", torch.einsum("lbhq,bq->lh", entropy_LBHQ, real), (count_BQ.log() * real).sum())
    largest_LBHQ = weights_LBHQK.amax(-1)
    totals.add("confidence", torch.einsum("lbhq,bq->lh", largest_LBHQ, real), (real / count_BQ).sum())
    queries, keys = visible_BQK.shape[1:]
    distance_QK = torch.arange(keys)[None] - torch.arange(queries)[:, None]
    masks = {"first": (torch.arange(keys) == 0)[None, None], "end": end_BK[:, None], "punctuation": marks_BK[:, None]}
    offsets = {f"offset {offset}": (distance_QK == offset)[None] for offset in OFFSETS}
    rows_B = real.sum(-1)
    totals.squared_rows += float(rows_B.square().sum())
    nothing = torch.zeros(())
    for name, mask in (masks | offsets).items():
        chosen_BQK = (mask & visible_BQK).double()
        sum_LHB = torch.einsum("lbhqk,bqk->lhb", weights_LBHQK, chosen_BQK)
        totals.add(name, sum_LHB.sum(-1), (chosen_BQK.sum(-1) / count_BQ).sum())
        if name in offsets:
            totals.add(f"{name} squared", sum_LHB.square().sum(-1), nothing)
            totals.add(f"{name} by rows", (sum_LHB * rows_B).sum(-1), nothing)


def _measures(means: Mapping[str, float], offset: int | None = None) -> Measures:
    if offset is None:
        offset = max(OFFSETS, key=lambda one: means[f"offset {one}"])
    plain = {name: means[name] for name in ("entropy", "confidence", "first", "end", "punctuation")}
    return Measures(**plain, offset=offset, offset_share=means[f"offset {offset}"])


def fresh(kinds: Iterable[Kind]) -> dict[Kind, Totals]:
    """Totals of nothing yet."""
    return {kind: Totals() for kind in kinds}
