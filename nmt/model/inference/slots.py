"""What a compiled decoder remembers: every sentence keeps its slot in memory for good, and nothing is ever moved.

S sentences · P hypotheses of each · R rows: sentences × hypotheses · N layers · 2 keys and values · D width
L source · T steps
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor

from nmt.model.seq2seq import State


@dataclass(frozen=True)
class Slots(State):
    """Keys and values of the sources and of what was written.

    `sentences` is the slot_S of each sentence; `rows` the past_RT: at which place of its sentence each token of a
    hypothesis is stored, so that a hypothesis that goes on from another takes over numbers instead of keys and values.
    A step writes into the cache: the state before it is used up.
    """

    memory_N2SLD: Tensor = torch.empty(0)
    length_S: Tensor = torch.empty(0)
    """Tokens of the source in each slot."""
    cache_N2STPD: Tensor = torch.empty(0)
    """With room for more steps and places than are used."""

    def select(self, index_B: Tensor) -> Slots:
        """The sentences at `index_B`. One that is named twice gets a slot for each, since both will be written to."""
        chosen = super().select(index_B)
        slot_S = chosen.sentences[0]
        if len(slot_S) < 2 or len(slot_S.unique()) == len(slot_S):
            return chosen
        return replace(
            chosen,
            sentences=(torch.arange(len(slot_S), dtype=slot_S.dtype),),
            memory_N2SLD=self.memory_N2SLD[:, :, slot_S],
            length_S=self.length_S[slot_S],
            cache_N2STPD=self.cache_N2STPD[:, :, slot_S],
        )

    def with_room(self) -> Tensor:
        """The cache with room for one more token of every hypothesis: soon for about as many as the source has.

        At first for one only, as there will be more hypotheses after it.
        """
        old = self.cache_N2STPD
        _, _, _, steps, beams, _ = old.shape
        if self.step < steps and self.beams <= beams:
            return old
        if self.step >= steps:
            steps = max(self.memory_N2SLD.size(3) + 8, self.step * 3 // 2 + 1) if self.step else 1
        larger = old.new_empty(*old.shape[:3], steps, max(beams, self.beams), old.size(5))
        larger[:, :, :, : self.step, :beams] = old[:, :, :, : self.step]
        return larger

    def stepped(self, cache_N2STPD: Tensor) -> Slots:
        """The state after a token of every hypothesis has been stored, each at its own place."""
        (past_RT,) = self.rows
        return replace(
            self,
            rows=(torch.cat([past_RT, _places(len(past_RT), self.beams)], 1),),
            step=self.step + 1,
            cache_N2STPD=cache_N2STPD,
        )


@lru_cache(256)
def _places(rows: int, beams: int) -> Tensor:
    """The place_R1 of each hypothesis in its sentence."""
    return torch.arange(rows, dtype=torch.int32).remainder_(beams)[:, None]
