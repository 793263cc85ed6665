"""The contract every architecture meets: encode, decode, start, step.  Search and training know nothing else.

B rows · S source · T target · D width · V vocabulary · N beams · R rows while stepping: sentences × beams
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import torch
from torch import Tensor, nn

from nmt.model.ways import Way, way


@dataclass(frozen=True)
class State:
    """What a decoder remembers between steps. Every tensor has its rows first; a step makes a new state.

    The `beams` hypotheses of a sentence stand in adjacent rows and share what is true of their sentence, so that
    search never copies the memory of the source.
    """

    sentences: tuple[Tensor, ...]
    """One row a sentence: what the source gave."""
    rows: tuple[Tensor, ...]
    """One row a hypothesis: what was written so far."""
    beams: int = 1
    """Hypotheses of each sentence."""
    step: int = 0
    """Tokens read so far; the same for all rows."""

    def select(self, index_B: Tensor) -> Self:
        """The sentences at `index_B`, each with all its hypotheses; one may be named twice, or not at all."""
        rows_R = index_B
        if self.beams > 1:
            rows_R = (index_B[:, None] * self.beams + torch.arange(self.beams, device=index_B.device)).flatten()
        return replace(
            self,
            sentences=tuple(tensor.index_select(0, index_B) for tensor in self.sentences),
            rows=tuple(tensor.index_select(0, rows_R) for tensor in self.rows),
        )

    def reorder(self, index_R: Tensor, beams: int | None = None) -> Self:
        """Row r goes on from the hypothesis in row `index_R[r]`, which must be one of the same sentence.

        There may be another number of `beams` from then on.
        """
        rows = tuple(tensor.index_select(0, index_R) for tensor in self.rows)
        return replace(self, rows=rows, beams=beams or self.beams)


class Stepper(Protocol):
    """What search asks of a model."""

    def encode(self, src_BS: Tensor, keep_BS: Tensor) -> Tensor:
        """As of Seq2Seq."""

    def start(self, memory: Tensor, keep_BS: Tensor, beams: int = 1) -> State:
        """As of Seq2Seq."""

    def step(self, state: Any, last_R: Tensor) -> tuple[Tensor, State]:
        """As of Seq2Seq, but the state given may be used up, and so may the logits given before in this thread."""


class Seq2Seq(nn.Module, ABC):
    """A model that reads a source and gives the scores of the next target token, for all prefixes or for one."""

    trains: Way | None = None
    """The way it is trained; the one that suits the device where this says nothing."""

    @abstractmethod
    def encode(self, src_BS: Tensor, keep_BS: Tensor) -> Tensor:
        """The memory of the source, batch first; `keep_BS` is True where a token is real."""

    @abstractmethod
    def decode_states(self, memory: Tensor, keep_BS: Tensor, tgt_BT: Tensor) -> Tensor:
        """The last layer's states x_BTD of every prefix of `tgt_BT`, which starts with the begin mark."""

    @property
    @abstractmethod
    def output_weight_VD(self) -> nn.Parameter:
        """The matrix of the output projection, which has no bias: a loss may then take states piece by piece."""

    @abstractmethod
    def start(self, memory: Tensor, keep_BS: Tensor, beams: int = 1) -> State:
        """The state before the first token, for `beams` hypotheses of each sentence."""

    @abstractmethod
    def step(self, state: State, last_R: Tensor) -> tuple[Tensor, State]:
        """The logits_RV that follow the tokens `last_R`, and the state after them. `state` itself stays valid."""

    @abstractmethod
    def initialize(self, generator: torch.Generator) -> None:
        """Draw all weights anew: they are then a function of the generator's seed only."""

    def way(self, device: torch.device) -> Way:
        """How whole sentences are to be computed there, and now."""
        return self.trains if self.training and self.trains else way(self.training, device.type)

    def project(self, x: Tensor) -> Tensor:
        """Logits over the target vocabulary of states with any number of leading dimensions."""
        return nn.functional.linear(x, self.output_weight_VD)

    def decode(self, memory: Tensor, keep_BS: Tensor, tgt_BT: Tensor) -> Tensor:
        """The logits_BTV that follow every prefix of `tgt_BT`: teacher forcing."""
        return self.project(self.decode_states(memory, keep_BS, tgt_BT))

    def forward(self, src_BS: Tensor, keep_BS: Tensor, tgt_BT: Tensor) -> Tensor:
        """The last states x_BTD for a batch of pairs: what training calls."""
        return self.decode_states(self.encode(src_BS, keep_BS), keep_BS, tgt_BT)
