"""Scaled dot-product attention by torch's fused kernel wherever that is faster.

B batch · H heads · Q queries · K keys · E width of a head · T tokens
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from nmt.model.attention.core import Attention
from nmt.model.kernels.attention import attention, suits
from nmt.model.packing import Packing
from nmt.model.position.core import Position

IN_LOOPS = 128  # tokens of a sentence up to which our own loops are faster than torch's products
SHORT = 128  # keys up to which a processor trains faster with the products written out; in bfloat16 even beyond


class DotAttention(Attention):
    """softmax(QKᵀ/√E)V (Vaswani et al. 2017, §3.2.1)."""

    def packed(
        self, x_ND: Tensor, memory_MD: Tensor, bias_B1QK: Tensor | None, queries: Packing, keys: Packing, causal: bool
    ) -> Tensor:
        """The heads of each token side by side; of short sentences by loops of our own, which need no masks."""
        if not self._in_loops(x_ND, queries, keys):
            return super().packed(x_ND, memory_MD, bias_B1QK, queries, keys, causal)
        if x_ND is memory_MD:
            q_NC, kv_MC = self.beside(x_ND, self.query, self.key, self.value), None
        else:
            q_NC, kv_MC = self.query(x_ND), self.beside(memory_MD, self.key, self.value)
        return attention(q_NC, kv_MC, torch.stack((queries.starts_B, keys.starts_B)), self.heads, causal)

    def _in_loops(self, x_ND: Tensor, queries: Packing, keys: Packing) -> bool:
        """Whether there are loops for this, and they are faster: nothing else is done to scores, weights and mixture.

        Who replaces `mix` wants to see the weights.
        """
        position, own = type(self.position), type(self)
        plain = (position.rotate, position.bias) == (Position.rotate, Position.bias) and "mix" not in vars(self)
        plain = plain and (own.weights, own.mix) == (Attention.weights, DotAttention.mix)
        thinned = self.training and self.dropout.p > 0
        widths = {part.out_features // self.heads for part in (self.query, self.value)}
        longest = max(queries.keep_BT.size(1), keys.keep_BT.size(1))
        return plain and not thinned and longest <= IN_LOOPS and suits(x_ND, widths)

    def mix(self, q_BHQE: Tensor, k_BHKE: Tensor, v_BHKE: Tensor, bias_BHQK: Tensor | None) -> Tensor:
        """The values, mixed by the weights.

        On a processor the fused kernel wins forwards but loses backwards, so short sentences are trained without it;
        with dropout it would only write the products out itself.
        """
        thinned = self.training and self.dropout.p > 0
        if q_BHQE.device.type == "cpu" and torch.is_grad_enabled() and (thinned or k_BHKE.size(2) <= SHORT):
            return super().mix(q_BHQE, k_BHKE, v_BHKE, bias_BHQK)
        return self.fused(q_BHQE, k_BHKE, v_BHKE, bias_BHQK)

    def fused(self, q_BHQE: Tensor, k_BHKE: Tensor, v_BHKE: Tensor, bias_BHQK: Tensor | None) -> Tensor:
        """The same in one kernel, which wants the bias in the type of the queries."""
        bias = None if bias_BHQK is None else bias_BHQK.to(q_BHQE.dtype)
        return scaled_dot_product_attention(q_BHQE, k_BHKE, v_BHKE, bias, self._share_dropped())

    def mix_past(self, q_BHTE: Tensor, k_BHTE: Tensor, v_BHTE: Tensor, bias_BHTT: Tensor | None) -> Tensor:
        """In one kernel, which knows without a mask what lies in the future."""
        if bias_BHTT is not None:
            return super().mix_past(q_BHTE, k_BHTE, v_BHTE, bias_BHTT)
        dropout = self._share_dropped()
        return scaled_dot_product_attention(q_BHTE, k_BHTE, v_BHTE, dropout_p=dropout, is_causal=True)

    def _share_dropped(self) -> float:
        return self.dropout.p if self.training else 0.0
