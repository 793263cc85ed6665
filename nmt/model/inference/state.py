"""What an inference decoder remembers: caches that are written in place and never put into another order.

S sentences · P hypotheses of each · R rows: sentences × hypotheses · U places used of a cache · C numbers a place
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from nmt.model.attention.core import MASKED
from nmt.model.seq2seq import State


@dataclass(frozen=True)
class Cached(State):
    """Keys and values of all tokens that any hypothesis of a sentence has read, in the order in which they came.

    A hypothesis that goes on from another copies none of them: a bias hides from it what is not of its own past, and
    that alone is put into another order. A step writes into the caches, so that the state before it is used up.
    """

    caches: tuple[Tensor, ...] = ()
    """For each layer keys and values as SUC, with room for more places behind the `used` ones."""
    used: int = 0

    @property
    def bias_RU(self) -> Tensor | None:
        """What hides others' pasts; None as long as nobody has another past."""
        return self.rows[0] if self.rows else None

    def reorder(self, index_R: Tensor) -> Cached:
        """Row r goes on from row `index_R[r]` of the same sentence."""
        return replace(self, rows=tuple(bias_RU.index_select(0, index_R) for bias_RU in self.rows))

    def select(self, index_S: Tensor) -> Cached:
        """The sentences at `index_S`. Where the last ones fill the places of others, only they are moved."""
        rows_R = index_S
        if self.beams > 1:
            rows_R = (index_S[:, None] * self.beams + torch.arange(self.beams)).flatten()
        places_M, sources_M = _moves(index_S)
        in_place = not len(places_M) or int(sources_M.min()) >= len(index_S)

        def chosen(tensor: Tensor) -> Tensor:
            if not in_place:
                return tensor.index_select(0, index_S)
            if len(places_M):
                tensor[places_M] = tensor[sources_M]
            return tensor[: len(index_S)]

        return replace(
            self,
            sentences=tuple(map(chosen, self.sentences)),
            caches=tuple(map(chosen, self.caches)),
            rows=tuple(bias_RU.index_select(0, rows_R) for bias_RU in self.rows),
        )

    def with_room(self, source: int) -> tuple[Tensor, ...]:
        """The caches with room for one more token of every hypothesis: at first for as many as the source has."""
        sentences, size, width = self.caches[0].shape
        if self.used + self.beams <= size:
            return self.caches
        size = max(self.used + self.beams * (source + 8), size * 3 // 2)
        larger = tuple(cache_SUC.new_empty(sentences, size, width) for cache_SUC in self.caches)
        for new, old in zip(larger, self.caches, strict=True):
            new[:, : self.used] = old[:, : self.used]
        return larger

    def own_past(self, rows: int) -> Tensor | None:
        """The bias over all places, those of the next token included, which each hypothesis alone can see."""
        if self.beams == 1:
            return None
        past_RU = self.bias_RU if self.bias_RU is not None else torch.zeros(rows, self.used)
        own_PP = torch.full((self.beams, self.beams), MASKED).fill_diagonal_(0)
        return torch.cat([past_RU, own_PP.repeat(rows // self.beams, 1)], 1)


def _moves(index_S: Tensor) -> tuple[Tensor, Tensor]:
    """Places whose sentence changes, and where their new one stands."""
    places_M = (index_S != torch.arange(len(index_S))).nonzero().flatten()
    return places_M, index_S[places_M]
