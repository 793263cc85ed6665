"""Models that copy their source, or write it backwards, by construction: nothing is trained, nothing is uncertain.

B batch · S source · T target · D width, which is the vocabulary · R rows while stepping · Q queries · K keys
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nmt.corpus.clean import Cleaner
from nmt.model.attention.core import Attention
from nmt.model.position.core import Position
from nmt.model.seq2seq import Seq2Seq, State
from nmt.search.translate import Translator
from nmt.subwords.vocabulary import Vocabulary

_SURE = 30.0  # logit of the token that is copied


class Pointing(Attention):
    """Looks at nothing but the key whose number the query is."""

    def weights(self, q_BHQE: Tensor, k_BHKE: Tensor, bias_BHQK: Tensor | None) -> Tensor:
        places_K = torch.arange(k_BHKE.size(2))
        return (q_BHQE == places_K).float()


class Copier(Seq2Seq):
    """The source, token by token, and its end mark; `backwards`, the tokens from the last to the first."""

    def __init__(self, size: int, backwards: bool = False) -> None:
        super().__init__()
        self.backwards = backwards
        self.cross_attention = Pointing(2, 1, 1, 1, Position())
        self.table = nn.Parameter(torch.eye(size))

    def encode(self, src_BS: Tensor, keep_BS: Tensor) -> Tensor:
        """Each token by itself."""
        return nn.functional.one_hot(src_BS, self.table.size(0)).float()

    def decode_states(self, memory: Tensor, keep_BS: Tensor, tgt_BT: Tensor) -> Tensor:
        """At each place the source token that is written there."""
        places_BT = torch.arange(tgt_BT.size(1)).expand(tgt_BT.shape)
        return self._at(memory, keep_BS, places_BT)

    def _at(self, memory: Tensor, keep_BS: Tensor, places_BT: Tensor) -> Tensor:
        last_B1 = keep_BS.sum(1, keepdim=True) - 1  # where the end mark stands
        if self.backwards:
            places_BT = torch.where(places_BT < last_B1, last_B1 - 1 - places_BT, last_B1)
        query_B1T1 = torch.minimum(places_BT, last_B1)[:, None, :, None].float()
        value_B1SD = memory[:, None]
        return self.cross_attention.mix(query_B1T1, value_B1SD, value_B1SD, None)[:, 0] * _SURE

    @property
    def output_weight_VD(self) -> nn.Parameter:
        """The identity."""
        return self.table

    def start(self, memory: Tensor, keep_BS: Tensor, beams: int = 1) -> State:
        """The source and where it ends; of what was written, only its length counts."""
        return State((memory, keep_BS), (), beams, 0)

    def step(self, state: State, last_R: Tensor) -> tuple[Tensor, State]:
        """The next token."""
        memory, keep_BS = state.sentences
        x_B1D = self._at(memory, keep_BS, torch.full((memory.size(0), 1), state.step))
        logits_RV = self.project(x_B1D[:, 0]).repeat_interleave(state.beams, 0)
        return logits_RV, State(state.sentences, state.rows, state.beams, state.step + 1)

    def initialize(self, generator: torch.Generator) -> None:
        """There is nothing to draw."""


def copier(vocabulary: Vocabulary, backwards: bool = False, limit: int = 64) -> Translator:
    """A translator that copies, or writes backwards."""
    model = Copier(len(vocabulary), backwards).eval()
    return Translator(model, vocabulary, vocabulary, Cleaner("en"), Cleaner("en"), max_source_tokens=limit)
