"""The static memory of a captured decoder: of a few sizes, made once, used by every search after the other.

S slots for sentences · P hypotheses of each · R rows: slots × hypotheses · D width · N layers · 2 keys and values
H heads · E width of a head · L places of the source · T steps · U places of the past: steps × hypotheses
V vocabulary · 1 broadcast
"""

from __future__ import annotations

import torch
from torch import Tensor

from nmt.model.attention.core import hide

FEWEST = 16  # places of a source, or steps


def size(length: int) -> int:
    """The places or steps that are set aside for `length`: powers of two, so that few sizes have to be captured.

    They depend on nothing but the length: so do the products and sums over them, down to the last digit.
    """
    return max(1 << (length - 1).bit_length(), FEWEST)


class Rows:
    """What goes into a step and comes out of it."""

    def __init__(self, slots: int, beams: int, vocabulary: int, dtype: torch.dtype, device: torch.device) -> None:
        self.token_SP = torch.zeros(slots, beams, dtype=torch.long, device=device)
        """The newest token of each hypothesis."""
        self.own_SP = torch.arange(beams, device=device).repeat(slots, 1)
        self.parent_SP = self.own_SP.clone()
        """Which hypothesis each one goes on from: the step begins by putting their pasts into this order."""
        self.place_1 = torch.zeros(1, dtype=torch.long, device=device)
        """Where the newest tokens stand."""
        self.logits_RV = torch.zeros(slots * beams, vocabulary, dtype=dtype, device=device)

    def begin(self, token: int) -> None:
        """All hypotheses have read nothing and are about to read `token`."""
        self.token_SP.fill_(token)
        self.parent_SP.copy_(self.own_SP)


class Source:
    """Keys and values of the sources, for all layers; `bias_S11L` hides padding."""

    def __init__(self, shape_N2SHLE: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> None:
        slots, self.places = shape_N2SHLE[2], shape_N2SHLE[4]
        self.memory_N2SHLE = torch.zeros(shape_N2SHLE, dtype=dtype, device=device)
        self.bias_S11L = torch.zeros(slots, 1, 1, self.places, dtype=dtype, device=device)

    def put(self, memory_N2SHLE: Tensor, keep_SL: Tensor) -> None:
        """New sources in the first slots; what has no source sees none."""
        count = len(keep_SL)
        self.memory_N2SHLE[:, :, :count] = memory_N2SHLE[:, :, :count]
        keep = keep_SL.new_zeros(self.bias_S11L.size(0), keep_SL.size(1))
        keep[:count] = keep_SL
        self.bias_S11L.copy_(hide(keep[:, None, None], self.bias_S11L.dtype))

    def take(self, old: Source, slot_S: Tensor) -> None:
        """What stands in these slots of `old`, perhaps this one itself, comes into the first ones."""
        self.memory_N2SHLE[:, :, : len(slot_S)] = old.memory_N2SHLE[:, :, slot_S]
        self.bias_S11L[: len(slot_S)] = old.bias_S11L[slot_S]


class Past:
    """Keys and values of what was written, in the order in which it came, and who has written it.

    A hypothesis that goes on from another copies no keys and values: `past_SPT` tells at which of its sentence's
    places each of its tokens is stored, -1 where it has none yet, and that alone is put into another order.
    """

    def __init__(self, shape_N2SHTPE: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> None:
        _, _, self.slots, _, self.steps, self.beams, _ = shape_N2SHTPE
        self.cache_N2SHTPE = torch.zeros(shape_N2SHTPE, dtype=dtype, device=device)
        self.cache_N2SHUE = self.cache_N2SHTPE.flatten(4, 5)
        self.past_SPT = torch.full((self.slots, self.beams, self.steps), -1, dtype=torch.int16, device=device)
        self.place_P = torch.arange(self.beams, device=device)

    def begin(self) -> None:
        """Nothing is written. What others left could be no number, which no mask hides."""
        self.cache_N2SHTPE.zero_()
        self.past_SPT.fill_(-1)

    def take(self, old: Past, slot_S: Tensor, steps: int) -> None:
        """The first `steps` in these slots of `old`, perhaps this one itself, come into the first slots."""
        taken = old.cache_N2SHTPE[:, :, slot_S, :, :steps]
        pasts = old.past_SPT[slot_S, :, :steps]
        if old is not self:
            self.begin()
        self.cache_N2SHTPE[:, :, : len(slot_S), :, :steps, : old.beams] = taken
        self.past_SPT[: len(slot_S), : old.beams, :steps] = pasts

    def hidden_S1PU(self, dtype: torch.dtype) -> Tensor:
        """The bias by which each hypothesis sees its own past only."""
        seen_SPTP = self.past_SPT[..., None] == self.place_P
        return hide(seen_SPTP.flatten(2)[:, None], dtype)

    def go_on(self, rows: Rows) -> None:
        """Take over the pasts of the parents; the newest tokens' places are their hypotheses' own."""
        order_SPT = rows.parent_SP[:, :, None].expand_as(self.past_SPT)
        past_SPT = self.past_SPT.gather(1, order_SPT)
        past_SPT.index_copy_(2, rows.place_1, rows.own_SP[:, :, None].to(past_SPT.dtype))
        self.past_SPT.copy_(past_SPT)
