"""Attention for inference: plain products over sentences and heads at once.

S sentences · T tokens, or hypotheses side by side · H heads · E width of a head · D width · K keys · 1 broadcast
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from nmt.model.attention.core import Attention
from nmt.model.inference.linear import Arithmetic
from nmt.model.inference.rowwise import linear
from nmt.model.position.core import Position

FEWEST = 16
"""Keys below which torch's softmax is slow: fewer numbers than a vector register holds."""


class Projections:
    """The linear layers of one attention. Queries come divided by √E already, through their weights."""

    def __init__(self, attention: Attention, arithmetic: Arithmetic, own_keys: bool) -> None:
        """With `own_keys`, keys and values are made of what the queries are made of, in the same product."""
        self.heads, self.position = attention.heads, attention.position
        self.width = attention.query.weight.size(0) // self.heads
        query = attention.query.weight / math.sqrt(self.width)
        parts = [query, attention.key.weight, attention.value.weight] if own_keys else [query]
        self.parts = len(parts)
        self.project = linear(torch.cat(parts), None, arithmetic)
        self.output = linear(attention.output.weight, None, arithmetic)
        self.turns = type(self.position).rotate is not Position.rotate

    def split(self, x: Tensor, sentences: int) -> Tensor:
        """Queries, and keys and values if they are its own, heads apart: 1SHTE or 3SHTE."""
        return self.project(x).view(sentences, -1, self.parts, self.heads, self.width).permute(2, 0, 3, 1, 4)

    def turned(self, qkv_3STE: Tensor, place: int = 0) -> Tensor:
        """Queries and keys as the position encoding wants them compared, the first token at `place`; values stay.

        Any number of dimensions may stand between the three and the tokens.
        """
        qk_2STE = qkv_3STE[:2]
        turned = self.position.rotate(qk_2STE.flatten(0, -4) if qk_2STE.dim() > 4 else qk_2STE, place)
        return torch.cat([turned.view(qk_2STE.shape), qkv_3STE[2:]])

    def merge(self, mixed_MTE: Tensor, like: Tensor) -> Tensor:
        """Heads side by side, projected back to the model's width, in the shape of the layer's input."""
        together = mixed_MTE.view(-1, self.heads, *mixed_MTE.shape[1:]).transpose(1, 2)
        return self.output(together.reshape(*like.shape[:-1], -1))


def mix(q_SHTE: Tensor, k_MKE: Tensor, v_MKE: Tensor, bias_MTK: Tensor | None) -> Tensor:
    """softmax(QKᵀ + bias)V as MTE, where M counts sentences × heads."""
    q_MTE = q_SHTE.reshape(len(k_MKE), -1, q_SHTE.size(-1))
    scores = torch.bmm(q_MTE, k_MKE.mT) if bias_MTK is None else torch.baddbmm(bias_MTK, q_MTE, k_MKE.mT)
    return torch.bmm(scores.softmax(-1), v_MKE)


def for_heads(bias_STK: Tensor, heads: int) -> Tensor:
    """A bias of sentences as one of sentences × heads."""
    return bias_STK.repeat_interleave(heads, 0)
