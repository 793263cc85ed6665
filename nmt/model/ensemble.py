"""Several models as one: their probabilities of the next token are averaged.

B batch · S source · T target · D width · V vocabulary · R rows while stepping
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor, nn

from nmt.model.seq2seq import Seq2Seq, State


@dataclass(frozen=True)
class Together(State):
    """The states of all models side by side."""

    sizes: tuple[tuple[int, int], ...] = ()
    """How many of `sentences` and `rows` belong to each model."""


class Ensemble(Seq2Seq):
    """Models of one vocabulary. Widths and kinds may differ. For search and scoring; it has no weights of its own.

    Memories and states of the models lie side by side in the last dimension; what comes as logits are the logarithms
    of averaged probabilities. Raises ValueError for models of vocabularies of different sizes.
    """

    def __init__(self, models: Sequence[Seq2Seq]) -> None:
        super().__init__()
        if len(sizes := {model.output_weight_VD.size(0) for model in models}) > 1:
            raise ValueError(f"the models of an ensemble share a vocabulary; theirs have {sorted(sizes)} tokens")
        self.models = cast(Sequence[Seq2Seq], nn.ModuleList(models))
        self.widths = [model.output_weight_VD.size(1) for model in models]
        if not any(model.training for model in models):
            self.eval()  # whoever translates puts back what was

    def encode(self, src_BS: Tensor, keep_BS: Tensor) -> Tensor:
        """The memories of all models."""
        return torch.cat([model.encode(src_BS, keep_BS) for model in self.models], -1)

    def decode_states(self, memory: Tensor, keep_BS: Tensor, tgt_BT: Tensor) -> Tensor:
        """The last states of all models."""
        memories = zip(self.models, memory.split(self.widths, -1), strict=True)
        return torch.cat([model.decode_states(own, keep_BS, tgt_BT) for model, own in memories], -1)

    def project(self, x: Tensor) -> Tensor:
        """The logarithms of averaged probabilities."""
        return average([m.project(own) for m, own in zip(self.models, x.split(self.widths, -1), strict=True)])

    def start(self, memory: Tensor, keep_BS: Tensor, beams: int = 1) -> Together:
        """The states of all models before the first token."""
        memories = zip(self.models, memory.split(self.widths, -1), strict=True)
        return together([model.start(own, keep_BS, beams) for model, own in memories])

    def step(self, state: State, last_R: Tensor) -> tuple[Tensor, Together]:
        """The logarithms of averaged probabilities after `last_R`, and all states after it."""
        own = zip(self.models, apart(cast(Together, state)), strict=True)
        logits, states = zip(*(model.step(one, last_R) for model, one in own), strict=True)
        return average(logits), together(states)

    @property
    def output_weight_VD(self) -> nn.Parameter:
        """There is none: an ensemble is not trained."""
        raise NotImplementedError("an ensemble has no output matrix of its own")

    def initialize(self, generator: torch.Generator) -> None:
        """Draw the weights of all models anew."""
        for model in self.models:
            model.initialize(generator)


def average(logits: Sequence[Tensor]) -> Tensor:
    """The logarithms of the average of the probabilities, which are logits of themselves."""
    log_probs = torch.stack([each.log_softmax(-1, dtype=torch.float32) for each in logits])
    return log_probs.logsumexp(0) - math.log(len(logits))


def together(states: Sequence[State]) -> Together:
    """Several models' states as one."""
    return Together(
        sentences=tuple(tensor for state in states for tensor in state.sentences),
        rows=tuple(tensor for state in states for tensor in state.rows),
        beams=states[0].beams,
        step=states[0].step,
        sizes=tuple((len(state.sentences), len(state.rows)) for state in states),
    )


def apart(state: Together) -> list[State]:
    """Each model's own state."""
    states, sentence, row = [], 0, 0
    for sentences, rows in state.sizes:
        own = State(state.sentences[sentence : sentence + sentences], state.rows[row : row + rows])
        states.append(replace(own, beams=state.beams, step=state.step))
        sentence, row = sentence + sentences, row + rows
    return states
