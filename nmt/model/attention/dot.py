"""Scaled dot-product attention with the fused kernel where that is faster.

B batch · H heads · Q queries · K keys · E width of a head
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from nmt.model.attention.core import Attention


class DotAttention(Attention):
    """softmax(QKᵀ/√E)V (Vaswani et al. 2017, §3.2.1)."""

    def mix(self, q_BHQE: Tensor, k_BHKE: Tensor, v_BHKE: Tensor, bias_BHQK: Tensor | None) -> Tensor:
        """The values, mixed by the weights: fused on accelerators, written out on processors.

        Sentences are short: the fused kernel's backward costs a processor more than the matrices it avoids.
        """
        if q_BHQE.device.type == "cpu":
            return super().mix(q_BHQE, k_BHKE, v_BHKE, bias_BHQK)
        return self.fused(q_BHQE, k_BHKE, v_BHKE, bias_BHQK)

    def fused(self, q_BHQE: Tensor, k_BHKE: Tensor, v_BHKE: Tensor, bias_BHQK: Tensor | None) -> Tensor:
        """The same by torch's fused kernel, which wants the mask in the type of the queries."""
        bias = None if bias_BHQK is None else bias_BHQK.to(q_BHQE.dtype)
        dropout = self.dropout if self.training else 0.0
        if torch.is_autocast_enabled(q_BHQE.device.type):
            bias = bias_BHQK
        return scaled_dot_product_attention(q_BHQE, k_BHKE, v_BHKE, bias, dropout)
