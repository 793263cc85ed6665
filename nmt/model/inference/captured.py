"""The Transformer for inference on a GPU: every step is one captured graph over static memory.

S sentences · L source · R rows while stepping: sentences × hypotheses · P hypotheses of a sentence · D width
T steps · V vocabulary

A search fills the first of a fixed number of slots, whatever the number of its sentences; the others compute along
and are never read. Sizes depend on a sentence's own length and on the beam only, so that every product has the same
shape in every batch, and no sentence's digits depend on its neighbours. Nothing leaves the static memory before its
search is over; a finished sentence's rows go on idly.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from nmt.model.inference.fixed import FixedTransformer
from nmt.model.inference.frames import Past, Rows, Source, size
from nmt.model.inference.graphs import Graphs, Replay
from nmt.model.seq2seq import State
from nmt.model.transformer import Transformer

ROWS = 512
"""Hypotheses of a batch: fewer make a step hardly faster on a large GPU, whose time goes into beginning operations."""
FEWER_ROWS, LITTLE_MEMORY = 128, 15 << 30
"""The same on GPUs with less memory than so many bytes."""
_BLOCK = 4096  # source tokens that are encoded together, always as many
T = TypeVar("T")


class CapturedTransformer:
    """What `model` computes, from copies of its weights: `encode`, `start` and `step` as of Seq2Seq.

    It serves one search at a time: `start` ends the search before, and a step uses up the state that it is given.
    """

    def __init__(self, model: Transformer, arithmetic: str, rows: int | None = None) -> None:
        self.fixed = FixedTransformer(model, getattr(torch, arithmetic))
        self.graphs, self.rows = Graphs(self.fixed.device), rows or rows_of_device(self.fixed.device)
        self.made: dict[Hashable, Any] = {}
        self.turn = 0
        self.source: Source
        self.past: Past

    @staticmethod
    def fits(model: object) -> bool:
        """Whether it can be: as of FixedTransformer."""
        return FixedTransformer.fits(model)

    def slots(self, beams: int, sentences: int = 1) -> int:
        """Sentences that are computed together where there are so many; more only for a batch that has more."""
        each = max(self.rows // beams, 1)
        return -(-sentences // each) * each

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What was made under `key` before, else what `make` makes; not of inference mode, so that all may write it."""
        if key not in self.made:
            with torch.inference_mode(False), torch.no_grad():
                self.made[key] = make()
        made: T = self.made[key]
        return made

    @torch.no_grad()
    def encode(self, src_SL: Tensor, keep_SL: Tensor) -> Tensor:
        """The memory_SLD of sources of which `keep_SL` tells the real tokens; their places are filled up to `size`."""
        places = size(src_SL.size(1))
        few = max(_BLOCK // places, 1)
        missing, more = -len(src_SL) % few, places - src_SL.size(1)
        src_SL, keep_SL = pad(src_SL, (0, more, 0, missing)), pad(keep_SL, (0, more, 0, missing))
        blocks = zip(src_SL.split(few), keep_SL.split(few), strict=True)
        return torch.cat([self.fixed.encode(src, keep) for src, keep in blocks])[: len(src_SL) - missing]

    @torch.no_grad()
    def start(self, memory_SLD: Tensor, keep_SL: Tensor, beams: int = 1) -> Seats:
        """The source's keys and values for all decoder layers, and an empty past."""
        count, places = len(keep_SL), size(memory_SLD.size(1))
        slots = self.slots(beams, count)
        more = places - memory_SLD.size(1)
        memory_SLD = pad(memory_SLD.to(self.fixed.dtype), (0, 0, 0, more, 0, slots - count))
        keep_SL = pad(keep_SL, (0, places - keep_SL.size(1)))
        self.source = self.source_of(slots, places)
        self.source.put(self.fixed.remembered(memory_SLD), keep_SL)
        self.past = self.past_of(slots, beams, size(1))
        self.past.begin()
        self.turn += 1
        slot_S = torch.arange(count, device=keep_SL.device)
        past_RT = torch.empty(count * beams, 0, dtype=torch.int16, device=keep_SL.device)
        return Seats((slot_S,), (past_RT,), beams, turn=self.turn)

    @torch.no_grad()
    def step(self, state: State, last_R: Tensor) -> tuple[Tensor, Seats]:
        """The logits_RV after the tokens `last_R`, and the state that remembers them."""
        assert isinstance(state, Seats)
        if state.turn != self.turn:
            raise RuntimeError("another search has begun since, and a captured model serves one at a time")
        state = self._seated(state)
        (slot_S,), (past_RT,) = state.sentences, state.rows
        rows = self.rows_of(self.past.slots, state.beams)
        rows.begin(0)
        rows.token_SP[slot_S] = last_R.view(-1, state.beams)
        self.past.past_SPT.fill_(-1)
        self.past.past_SPT[slot_S, :, : state.step] = past_RT.view(len(slot_S), state.beams, state.step)
        self.advance(rows, state.step)
        logits_RV = rows.logits_RV.unflatten(0, rows.token_SP.shape)[slot_S].flatten(0, 1)
        own_R1 = rows.own_SP[: len(slot_S)].reshape(-1, 1).to(past_RT.dtype)
        return logits_RV, replace(state, rows=(torch.cat([past_RT, own_R1], 1),), step=state.step + 1)

    def _seated(self, state: Seats) -> Seats:
        """The same, where the memory has a slot for each sentence, all hypotheses and one more step; else moved."""
        (slot_S,) = state.sentences
        if not state.twice and self.past.beams == state.beams and self.past.steps > state.step:
            return state
        source, past = self.source, self.past
        slots = self.slots(state.beams, len(slot_S))
        self.source = self.source_of(slots, source.places)
        self.source.take(source, slot_S)
        self.past = self.past_of(slots, state.beams, size(state.step + 1))
        self.past.take(past, slot_S, state.step)
        return replace(state, sentences=(torch.arange(len(slot_S), device=slot_S.device),), twice=False)

    def advance(self, rows: Rows, step: int) -> None:
        """Read the tokens of `rows`, which stand at `step`, and leave the logits of the next ones there."""
        if self.past.steps <= step:
            old = self.past
            self.past = self.past_of(old.slots, old.beams, size(step + 1))
            self.past.take(old, torch.arange(old.slots, device=self.fixed.device), step)
        rows.place_1.fill_(step)
        self._captured(rows, self.source, self.past)()

    def _captured(self, rows: Rows, source: Source, past: Past) -> Replay:
        side, steps = self.fixed.decoder_side, past.steps
        codes_TD = self.once(("codes", steps), lambda: side.codes(steps))
        turns_2TE = self.once(("turns", steps), lambda: side.turns(steps))
        return self.once(
            ("step", past.slots, past.beams, source.places, steps),
            lambda: self.graphs.of(
                lambda: self.fixed.step(rows, source, past, codes_TD, turns_2TE), changes=[past.past_SPT]
            ),
        )

    def rows_of(self, slots: int, beams: int) -> Rows:
        """What goes into steps of this size and comes out of them."""
        vocabulary, dtype = len(self.fixed.output_VD), self.fixed.logits_dtype
        return self.once(("rows", slots, beams), lambda: Rows(slots, beams, vocabulary, dtype, self.fixed.device))

    def source_of(self, slots: int, places: int) -> Source:
        """Memory for sources of this size."""
        shape = self.fixed.layers, 2, slots, self.fixed.heads, places, self.fixed.head_width
        return self.once(("source", slots, places), lambda: Source(shape, self.fixed.dtype, self.fixed.device))

    def past_of(self, slots: int, beams: int, steps: int) -> Past:
        """Memory for pasts of this size."""
        shape = self.fixed.layers, 2, slots, self.fixed.heads, steps, beams, self.fixed.head_width
        return self.once(("past", slots, beams, steps), lambda: Past(shape, self.fixed.dtype, self.fixed.device))


def rows_of_device(device: torch.device) -> int:
    """The hypotheses of a batch: always as many on one GPU, so that no translation depends on what else it is doing."""
    if device.type == "cuda" and torch.cuda.get_device_properties(device).total_memory < LITTLE_MEMORY:
        return FEWER_ROWS
    return ROWS


@dataclass(frozen=True)
class Seats(State):
    """Where a search's sentences have their places in the static memory.

    `sentences` is the slot_S of each; `rows` the past_RT: at which place of its sentence each token of a hypothesis is
    stored, so that a hypothesis that goes on from another takes over numbers instead of keys and values.
    """

    turn: int = 0
    """Number of the search."""
    twice: bool = False
    """Whether a sentence is named more than once, so that it needs several slots."""

    def select(self, index_B: Tensor) -> Self:
        """The sentences at `index_B`; one that is named twice gets a slot for each with the next step."""
        chosen = super().select(index_B)
        (slot_S,) = chosen.sentences
        return replace(chosen, twice=len(slot_S.unique()) < len(slot_S))
