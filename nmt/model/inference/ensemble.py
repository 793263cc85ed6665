"""Several models as one for inference on a processor, each in its compiled form.

S sentences · L source · D width · V vocabulary · R rows while stepping
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nmt.model.ensemble import Ensemble
from nmt.model.inference import loops
from nmt.model.inference.compiled import CompiledTransformer
from nmt.model.inference.linear import Arithmetic
from nmt.model.inference.slots import Slots
from nmt.model.seq2seq import State
from nmt.model.transformer import Transformer


@dataclass(frozen=True)
class Abreast(State):
    """The states of all models, which take every step together."""

    own: tuple[Slots, ...] = ()

    @classmethod
    def of(cls, own: tuple[Slots, ...]) -> Abreast:
        """These, and what they have in common."""
        first = own[0]
        return cls(first.sentences, first.rows, first.beams, first.step, own)

    def select(self, index_B: Tensor) -> Abreast:
        """As of State."""
        return Abreast.of(tuple(state.select(index_B) for state in self.own))

    def reorder(self, index_R: Tensor, beams: int | None = None) -> Abreast:
        """As of State."""
        return Abreast.of(tuple(state.reorder(index_R, beams) for state in self.own))


class CompiledEnsemble:
    """What an Ensemble computes, with all that a CompiledTransformer promises."""

    def __init__(self, model: Ensemble, arithmetic: Arithmetic) -> None:
        self.widths = model.widths
        self.forms = [CompiledTransformer(one, arithmetic) for one in model.models if isinstance(one, Transformer)]

    @staticmethod
    def fits(model: object, arithmetic: Arithmetic = "float32") -> bool:
        """Whether it can be: where each of the models can."""
        return isinstance(model, Ensemble) and all(CompiledTransformer.fits(one, arithmetic) for one in model.models)

    @torch.no_grad()
    def encode(self, src_SL: Tensor, keep_SL: Tensor) -> Tensor:
        """As of Ensemble."""
        return torch.cat([form.encode(src_SL, keep_SL) for form in self.forms], -1)

    @torch.no_grad()
    def start(self, memory_SLD: Tensor, keep_SL: Tensor, beams: int = 1) -> Abreast:
        """As of Ensemble."""
        memories = zip(self.forms, memory_SLD.split(self.widths, -1), strict=True)
        return Abreast.of(tuple(form.start(own, keep_SL, beams) for form, own in memories))

    def step(self, state: State, last_R: Tensor) -> tuple[Tensor, Abreast]:
        """As of Ensemble; the state given is used up."""
        return self._added(form.step(own, last_R) for form, own in self._forms(state))

    def watch(self, state: State, last_R: Tensor) -> tuple[Tensor, Abreast, Tensor]:
        """As of CompiledTransformer, mean over the models."""
        seen: list[Tensor] = []

        def watched(form: CompiledTransformer, own: Slots) -> tuple[Tensor, Slots]:
            logits_RV, following, looked_RL = form.watch(own, last_R)
            seen.append(looked_RL)
            return logits_RV, following

        logits_RV, states = self._added(watched(form, own) for form, own in self._forms(state))
        return logits_RV, states, torch.stack(seen).mean(0)

    def _forms(self, state: State) -> Iterable[tuple[CompiledTransformer, Slots]]:
        assert isinstance(state, Abreast)
        return zip(self.forms, state.own, strict=True)

    def _added(self, stepped: Iterable[tuple[Tensor, Slots]]) -> tuple[Tensor, Abreast]:
        """The models' opinions as one, each read before the next one's is written to the same memory."""
        total_RV, states = np.empty((0, 0), np.float32), list[Slots]()
        for logits_RV, following in stepped:
            if not states:
                total_RV = np.full(logits_RV.shape, -np.inf, np.float32)
            loops.add_probabilities(logits_RV.numpy(), total_RV)
            states.append(following)
        total_RV -= np.float32(math.log(len(states)))
        return torch.from_numpy(total_RV), Abreast.of(tuple(states))
