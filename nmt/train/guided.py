"""Guided alignment: attention to the source is trained towards word alignments (Chen et al. 2016; Garg et al. 2019).

B batch · T target · S source · H heads · L links · P passes of a batch · 2 source, target · 3 row, target, source

With A_ts the weight with which the step that writes target piece t looks at source piece s, and G_ts one over the
number of pieces that t is linked to, for those, the loss of a pair is −Σ_t Σ_s G_ts log A_ts: target pieces without
links have no part in it. Like all losses here it is a sum, and divided by the target tokens of the update.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nmt.batches.ahead import Update
from nmt.batches.batch import Batch
from nmt.batches.links import Links, WordsOfPieces, links_of_pieces
from nmt.errors import TrainingError
from nmt.model.attention.core import Attention
from nmt.model.seq2seq import Seq2Seq
from nmt.subwords.tags import tags_before
from nmt.train.data import Pairs

TINY = 1e-9  # added to a weight before its logarithm


@dataclass(frozen=True)
class AlignedBatch(Batch):
    """Sentence pairs whose pieces are linked."""

    links_L3: Tensor
    """Row, place in the target, place in the source."""
    share_L: Tensor
    """One over the number of source pieces that the target piece is linked to."""

    def to(self, device: torch.device | str) -> AlignedBatch:
        """The same batch on `device`."""
        plain = super().to(device)
        links_L3, share_L = (tensor.to(device, non_blocking=True) for tensor in (self.links_L3, self.share_L))
        return AlignedBatch(**_values(plain), links_L3=links_L3, share_L=share_L)

    def _rows(self, rows: slice, pad: int) -> AlignedBatch:
        first, end, _ = rows.indices(len(self.src_BS))
        here_L = (self.links_L3[:, 0] >= first) & (self.links_L3[:, 0] < end)
        links_L3 = self.links_L3[here_L] - torch.tensor([first, 0, 0], device=here_L.device)
        return AlignedBatch(**_values(super()._rows(rows, pad)), links_L3=links_L3, share_L=self.share_L[here_L])


class AlignedPairs(Pairs):
    """Pairs with links between their pieces. Where `links` are of words, `words` tell which word each piece is of.

    Links are of the sentence: what stands before it, up to the last of the ids `tags`, is not counted by them, and
    linked to nothing.
    """

    def __init__(
        self,
        pairs: Pairs,
        links: Links,
        words: tuple[WordsOfPieces, WordsOfPieces] | None,
        tags: Container[int] = frozenset(),
    ) -> None:
        super().__init__(pairs.source, pairs.target, pairs.order, bos=pairs.bos, eos=pairs.eos, pad=pairs.pad)
        self._pairs, self._links, self._words, self._tags = pairs, links, words, tags

    @property
    def groups(self) -> int:
        """How many groups an epoch has."""
        return self._pairs.groups

    def updates(self, epoch: int, group: int = 0) -> list[Update]:
        """The updates of a group of an epoch."""
        return self._pairs.updates(epoch, group)

    def load(self, rows: np.ndarray) -> AlignedBatch:
        """These pairs as one padded batch, with their links."""
        batch = self._pairs.load(rows)
        found = [np.zeros((0, 3), np.int64)]
        shares = [np.zeros(0)]
        for place, row in enumerate(rows):
            links_L2 = self._of_pieces(int(row))
            found.append(np.column_stack((np.full(len(links_L2), place), links_L2[:, 1], links_L2[:, 0])))
            shares.append(1 / np.bincount(links_L2[:, 1])[links_L2[:, 1]] if len(links_L2) else shares[0])
        links_L3 = torch.from_numpy(np.concatenate(found))
        share_L = torch.from_numpy(np.concatenate(shares)).float()
        return AlignedBatch(**_values(batch), links_L3=links_L3, share_L=share_L)

    def _of_pieces(self, row: int) -> np.ndarray:
        links_L2, source = self._links[row], self._pairs.source[row]
        before = tags_before(source, self._tags)
        if self._words is not None:
            target_words = self._words[1](self._pairs.target[row])
            links_L2 = links_of_pieces(links_L2, self._words[0](source[before:]), target_words)
        return links_L2 + np.array([before, 0]) if before else links_L2


class GuidedObjective(nn.Module):
    """Another objective, to whose loss that of a cross-attention is added with `weight`.

    `layer` is the decoder's, from 0, by default the last but one; `head` is one of its heads, from 0, by default the
    mean of all, which is what alignments are read from. Raises TrainingError where the model has none.
    """

    def __init__(
        self,
        model: Seq2Seq,
        make: Callable[[Seq2Seq], nn.Module],
        *,
        weight: float,
        layer: int | None = None,
        head: int | None = None,
    ) -> None:
        super().__init__()
        self.objective = make(model)
        self.weight = weight
        crossing = [module for name, module in model.named_modules() if name.endswith("cross_attention")]
        number = max(len(crossing) - 2, 0) if layer is None else layer
        if number >= len(crossing) or not isinstance(chosen := crossing[number], Attention):
            raise TrainingError(f"there is no attention to the source in decoder layer {number + 1} to be guided")
        if head is not None and head >= chosen.heads:
            raise TrainingError(f"there is no head {head + 1} in decoder layer {number + 1}; it has {chosen.heads}")
        self._chosen, self._head = [chosen], head  # in a list: it is the model's part, and stays that only

    def forward(self, batch: Batch, smoothing: float, pad: int) -> tuple[Tensor, Tensor]:
        """The summed loss, and the summed −log p of the batch's labels."""
        with _recorded(self._chosen[0], self._head) as seen:
            loss, nll = self.objective(batch, smoothing, pad)
        if isinstance(batch, AlignedBatch) and seen:  # nothing is seen where the layer is left out
            loss = loss + self.weight * alignment_loss(seen[0], batch.links_L3, batch.share_L, len(batch.src_BS))
        return loss, nll


def alignment_loss(weights_BTS: Tensor, links_L3: Tensor, share_L: Tensor, rows: int) -> Tensor:
    """−Σ G log A over the links of a batch of so many `rows`, the mean of its passes where it came more than once."""
    weights_PBTS = weights_BTS.unflatten(0, (-1, rows))
    looked_PL = weights_PBTS[:, links_L3[:, 0], links_L3[:, 1], links_L3[:, 2]]
    return -(share_L.to(looked_PL.dtype) * (looked_PL + TINY).log()).sum() / len(weights_PBTS)


@contextmanager
def _recorded(attention: Attention, head: int | None) -> Iterator[list[Tensor]]:
    """The weights of every call, of a head or the mean of all, with their gradient, and before dropout."""
    seen: list[Tensor] = []
    mix = attention.mix

    def record(q_BHQE: Tensor, k_BHKE: Tensor, v_BHKE: Tensor, bias_BHQK: Tensor | None) -> Tensor:
        weights_BHQK = attention.weights(q_BHQE, k_BHKE, bias_BHQK)
        exact = torch.promote_types(weights_BHQK.dtype, torch.float32)
        seen.append(weights_BHQK.to(exact).mean(1) if head is None else weights_BHQK[:, head].to(exact))
        return mix(q_BHQE, k_BHKE, v_BHKE, bias_BHQK)

    attention.mix = record  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        del attention.mix  # the class's own again


def _values(batch: Batch) -> dict[str, Any]:
    return {field.name: getattr(batch, field.name) for field in fields(Batch)}
