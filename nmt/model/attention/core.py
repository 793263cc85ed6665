"""Multi-head attention (Vaswani et al. 2017, §3.2).

B batch · Q queries · K keys · D width · H heads · E width of a head · T tokens · 1 broadcast
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from nmt.model.dropout import Dropout
from nmt.model.initial import Linear
from nmt.model.kernels.linear import linear
from nmt.model.packing import Packing
from nmt.model.position.core import Position

# Added to the score of a key that may not be attended: its weight is then exactly zero in every floating type, the
# sum fits even float16, and a query without a single key gets some finite mixture, not NaN as with -inf.
MASKED = -3e4


def hide(keep: Tensor, dtype: torch.dtype) -> Tensor:
    """The boolean mask `keep` as numbers to add to scores: made once a batch, used by every layer."""
    return torch.zeros_like(keep, dtype=dtype).masked_fill_(~keep, MASKED)


def past(length: int, device: torch.device) -> Tensor:
    """keep_11TT: every token itself and those before it."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]


class Attention(nn.Module):
    """Project, weigh keys by queries, mix values, merge heads. Keeps no cache: that is `remember`'s caller's.

    A kind of attention overrides `weights`, `mix`, `mix_past` or `merge`. `bias_B1QK` is what `hide` made of the mask;
    None where every key may be attended. `dropout` is that of the weights.
    """

    def __init__(
        self, width: int, heads: int, key_width: int, value_width: int, position: Position, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.heads = heads
        self.position = position
        self.dropout = Dropout(dropout)
        self.query = Linear(width, heads * key_width, bias=False)
        self.key = Linear(width, heads * key_width, bias=False)
        self.value = Linear(width, heads * value_width, bias=False)
        self.output = Linear(heads * value_width, width, bias=False)

    def forward(
        self,
        x_BQD: Tensor,
        memory_BKD: Tensor,
        bias_B1QK: Tensor | None = None,
        queries: Packing | None = None,
        keys: Packing | None = None,
        causal: bool = False,
    ) -> Tensor:
        """Every query's mixture of the memory, in the model's width.

        With packings of `queries` and `keys`, `x` and memory are tokens without padding between them, x_ND. The
        memory of self-attention is `x` itself. `causal` tells that the bias hides the future.
        """
        if queries is None or keys is None:
            return self.attend(x_BQD, *self.remember(memory_BKD), bias_B1QK)
        return self.merge(self.packed(x_BQD, memory_BKD, bias_B1QK, queries, keys, causal), x_BQD)

    def packed(
        self, x_ND: Tensor, memory_MD: Tensor, bias_B1QK: Tensor | None, queries: Packing, keys: Packing, causal: bool
    ) -> Tensor:
        """The heads of each token side by side."""
        if x_ND is memory_MD:
            q_BHQE, k_BHKE, v_BHKE = self.project(x_ND, queries, self.query, self.key, self.value)
        else:
            (q_BHQE,) = self.project(x_ND, queries, self.query)
            k_BHKE, v_BHKE = self.project(memory_MD, keys, self.key, self.value)
        q_BHQE, k_BHKE = self.position.rotate(q_BHQE), self.position.rotate(k_BHKE)
        bias_BHQK = self.biased(q_BHQE, k_BHKE.size(2), bias_B1QK)
        return queries.together(self.mix(q_BHQE, k_BHKE, v_BHKE, bias_BHQK))

    def causal(self, x_BTD: Tensor) -> Tensor:
        """Self-attention in which every token sees itself and those before it."""
        q_BHTE = self.position.rotate(self.split(self.query(x_BTD)))
        k_BHTE, v_BHTE = self.remember(x_BTD)
        mixed_BHTE = self.mix_past(q_BHTE, k_BHTE, v_BHTE, self.position.bias(q_BHTE, q_BHTE.size(2)))
        return self.merge(mixed_BHTE.transpose(1, 2).flatten(2), x_BTD)

    def project(self, x_ND: Tensor, packing: Packing, *projections: Linear) -> tuple[Tensor, ...]:
        """What several matrices of one shape make of `x_ND`, in one product, as BHTE each."""
        if len({projection.out_features for projection in projections}) > 1:
            return tuple(self.project(x_ND, packing, one)[0] for one in projections)
        return packing.apart(self.beside(x_ND, *projections), len(projections), self.heads)

    def beside(self, x_ND: Tensor, *projections: Linear) -> Tensor:
        """What several matrices make of `x_ND`, in one product, side by side."""
        weight = torch.cat([one.weight for one in projections]) if len(projections) > 1 else projections[0].weight
        return linear(x_ND, weight)

    def remember(self, memory_BKD: Tensor, start: int = 0) -> tuple[Tensor, Tensor]:
        """Keys and values of the memory, whose first token stands at place `start`."""
        k_BHKE = self.position.rotate(self.split(self.key(memory_BKD)), start)
        return k_BHKE, self.split(self.value(memory_BKD))

    def attend(
        self, x_BQD: Tensor, k_BHKE: Tensor, v_BHKE: Tensor, bias_B1QK: Tensor | None = None, start: int = 0
    ) -> Tensor:
        """The mixture of `v_BHKE` for queries of which the first stands at place `start`."""
        q_BHQE = self.position.rotate(self.split(self.query(x_BQD)), start)
        bias_BHQK = self.biased(q_BHQE, k_BHKE.size(2), bias_B1QK, start)
        return self.merge(self.mix(q_BHQE, k_BHKE, v_BHKE, bias_BHQK).transpose(1, 2).flatten(2), x_BQD)

    def biased(self, q_BHQE: Tensor, keys: int, bias_B1QK: Tensor | None, start: int = 0) -> Tensor | None:
        """What is added to the scores: for the mask, and for the position."""
        bias_BHQK = self.position.bias(q_BHQE, keys, start)
        if bias_BHQK is None or bias_B1QK is None:
            return bias_B1QK if bias_BHQK is None else bias_BHQK
        return bias_BHQK + bias_B1QK

    def weights(self, q_BHQE: Tensor, k_BHKE: Tensor, bias_BHQK: Tensor | None) -> Tensor:
        """softmax(QKᵀ/√E + bias): how much each query takes of each key."""
        scores_BHQK = (q_BHQE / math.sqrt(q_BHQE.size(-1))) @ k_BHKE.mT
        scores_BHQK = scores_BHQK if bias_BHQK is None else scores_BHQK + bias_BHQK
        return scores_BHQK.softmax(-1, torch.promote_types(scores_BHQK.dtype, torch.float32)).to(scores_BHQK.dtype)

    def mix(self, q_BHQE: Tensor, k_BHKE: Tensor, v_BHKE: Tensor, bias_BHQK: Tensor | None) -> Tensor:
        """The values, mixed by the weights."""
        weights_BHQK = self.weights(q_BHQE, k_BHKE, bias_BHQK)
        return self.dropout(weights_BHQK) @ v_BHKE

    def mix_past(self, q_BHTE: Tensor, k_BHTE: Tensor, v_BHTE: Tensor, bias_BHTT: Tensor | None) -> Tensor:
        """As `mix`, each token taking nothing of those after it."""
        future_11TT = hide(past(q_BHTE.size(2), q_BHTE.device), q_BHTE.dtype)
        return self.mix(q_BHTE, k_BHTE, v_BHTE, future_11TT if bias_BHTT is None else bias_BHTT + future_11TT)

    def merge(self, heads: Tensor, x: Tensor) -> Tensor:
        """The heads of each token, side by side, projected back to the model's width D.

        `heads` and `x`, the layer's input for gates to read, have the same leading dimensions: BQ, or N when packed.
        """
        return self.output(heads)

    def split(self, x_BKD: Tensor) -> Tensor:
        """Heads apart: BKD to BHKE."""
        return x_BKD.unflatten(-1, (self.heads, -1)).transpose(1, 2)
