"""What an inference decoder remembers: caches that are written in place and never put into another order.

S sentences · P hypotheses of each · R rows: sentences × hypotheses · N layers · 2 keys and values · H heads
E width of a head · L source · U places used of a cache
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

    A hypothesis that goes on from another copies none of them: a bias, the only tensor among `rows`, hides from it
    what is not of its own past, and that alone is put into another order. `rows` is empty as long as nothing needs
    hiding. A step writes into the cache, so that the state before it is used up.
    """

    memory_N2SHLE: Tensor = torch.empty(0)
    """Keys and values of the source, for each layer."""
    cache_N2SHUE: Tensor = torch.empty(0)
    """Keys and values of what was written, with room for more places behind the `used` ones."""
    used: int = 0

    def select(self, index_S: Tensor) -> Cached:
        """The sentences at `index_S`. Where the last ones fill the places of others, only they are moved."""
        rows_R = index_S
        if self.beams > 1:
            rows_R = (index_S[:, None] * self.beams + torch.arange(self.beams)).flatten()
        return replace(
            self,
            sentences=tuple(tensor.index_select(0, index_S) for tensor in self.sentences),
            rows=tuple(bias_RU.index_select(0, rows_R) for bias_RU in self.rows),
            memory_N2SHLE=_chosen(self.memory_N2SHLE, index_S, self.memory_N2SHLE.size(4)),
            cache_N2SHUE=_chosen(self.cache_N2SHUE, index_S, self.used),
        )

    def with_room(self) -> Tensor:
        """The cache with room for one more token of every hypothesis: at first for as many as the source has."""
        old, needed = self.cache_N2SHUE, self.used + self.beams
        if needed <= old.size(4):
            return old
        source = self.memory_N2SHLE.size(4)
        larger = old.new_empty(
            *old.shape[:4], max(self.used + self.beams * (source + 8), old.size(4) * 3 // 2), old.size(5)
        )
        larger[..., : self.used, :] = old[..., : self.used, :]
        return larger

    def own_past(self, rows: int) -> Tensor | None:
        """The bias_RU of all places, those of the next token included, which each hypothesis alone can see."""
        if self.beams == 1:
            return None
        past_RU = self.rows[0] if self.rows else torch.zeros(rows, self.used)
        own_PP = torch.full((self.beams, self.beams), MASKED).fill_diagonal_(0)
        return torch.cat([past_RU, own_PP.repeat(rows // self.beams, 1)], 1)


def _chosen(x_N2SHUE: Tensor, index_S: Tensor, used: int) -> Tensor:
    """The sentences at `index_S`; only the `used` places of those that move are copied."""
    places_M = (index_S != torch.arange(len(index_S))).nonzero().flatten()
    sources_M = index_S[places_M]
    if len(places_M) and int(sources_M.min()) < len(index_S):
        return x_N2SHUE.index_select(2, index_S)
    for place, source in zip(places_M.tolist(), sources_M.tolist(), strict=True):
        x_N2SHUE[:, :, place, :, :used] = x_N2SHUE[:, :, source, :, :used]
    return x_N2SHUE[:, :, : len(index_S)]
