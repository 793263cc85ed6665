"""The layers of encoder and decoder, and the residual connection around each of their parts.

B batch · S source · T target · D width · F feed-forward · H heads · E width of a head · K keys · 1 broadcast
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from nmt.model.attention.core import Attention
from nmt.model.dropout import Dropout
from nmt.model.initial import Linear
from nmt.model.kernels import rows
from nmt.model.kernels.linear import linear
from nmt.model.packing import Packing

EPSILON = 1e-6  # of LayerNorm, as in the code of Vaswani et al. 2017


class LayerNorm(nn.LayerNorm):
    """torch's, whose result has the type of what it is given under a GPU's autocast too.

    There torch would compute float32 numbers of bfloat16 ones; all that follows up to the next product would take twice
    the memory, and be cut to bfloat16 again in front of each product. Means and deviations are float32 inside anyway.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Each row with mean zero and deviation one, times the weights, plus the bias."""
        kind = x.device.type
        if self.training and rows.suits(x, weights=(self.weight, self.bias)):
            return rows.layer_norm(x, self.weight, self.bias, self.eps)
        if kind == "cpu" or not torch.is_autocast_enabled(kind):
            return super().forward(x)
        with torch.autocast(kind, enabled=False):
            return self.low(x)

    def low(self, x: Tensor) -> Tensor:
        """The same, with weights in the type of `x`: a GPU's kernel wants all in one."""
        weight, bias = self.weight.to(x.dtype), self.bias.to(x.dtype)
        return nn.functional.layer_norm(x, self.normalized_shape, weight, bias, self.eps)


def layer_norm(width: int) -> nn.LayerNorm:
    """LayerNorm as everywhere in the model."""
    return LayerNorm(width, eps=EPSILON)


class FeedForward(nn.Module):
    """max(0, xW₁ + b₁)W₂ + b₂ (Vaswani et al. 2017, §3.3), or with another nonlinearity."""

    def __init__(self, width: int, inner: int, activation: str = "relu", dropout: float = 0.0) -> None:
        super().__init__()
        self.inner = Linear(width, inner)
        self.outer = Linear(inner, width)
        self.activation: Callable[[Tensor], Tensor] = {"relu": torch.relu, "gelu": nn.functional.gelu}[activation]
        self.dropout = Dropout(dropout)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """Each position by itself."""
        return self.outer(self.dropout(self.activated(x_BTD)))

    def activated(self, x_BTD: Tensor) -> Tensor:
        """The inner states. Of packed tokens in training, what the product gives is made them in its own place."""
        if self.training and x_BTD.dim() == 2 and self.activation is torch.relu:
            y_NF = linear(x_BTD, self.inner.weight)
            bias_F = self.inner.bias
            return rows.rectified(y_NF, bias_F) if rows.suits(y_NF, weights=[bias_F]) else torch.relu(y_NF + bias_F)
        return self.activation(self.inner(x_BTD))


class Residual(nn.Module):
    """The sum of a part's input and output, and the LayerNorm that belongs to it.

    post: LayerNorm(x + Dropout(part(x))), the paper's §3.1. pre: x + Dropout(part(LayerNorm(x))).
    """

    def __init__(self, width: int, norm: str, dropout: float) -> None:
        super().__init__()
        self.norm = layer_norm(width)
        self.dropout = Dropout(dropout)
        self.post = norm == "post"

    def before(self, x_BTD: Tensor) -> Tensor:
        """What the part shall read."""
        return x_BTD if self.post else self.norm(x_BTD)

    def after(self, x_BTD: Tensor, y_BTD: Tensor) -> Tensor:
        """What the next part shall read, where `y_BTD` is what this one gave."""
        sum_BTD = self.dropout.added(x_BTD, y_BTD)
        return self.norm(sum_BTD) if self.post else sum_BTD


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward."""

    def __init__(self, width: int, attention: Attention, feedforward: FeedForward, norm: str, dropout: float) -> None:
        super().__init__()
        self.attention = attention
        self.attention_residual = Residual(width, norm, dropout)
        self.feedforward = feedforward
        self.feedforward_residual = Residual(width, norm, dropout)

    def forward(self, x_BSD: Tensor, bias_B11S: Tensor, packing: Packing | None = None) -> Tensor:
        """The layer's states; `bias_B11S` hides padding. With a `packing`, x_ND in and out."""
        y_BSD = self.attention_residual.before(x_BSD)
        x_BSD = self.attention_residual.after(x_BSD, self.attention(y_BSD, y_BSD, bias_B11S, packing, packing))
        y_BSD = self.feedforward_residual.before(x_BSD)
        return self.feedforward_residual.after(x_BSD, self.feedforward(y_BSD))


class DecoderLayer(nn.Module):
    """Self-attention over what was written, cross-attention over the source, feed-forward."""

    def __init__(
        self,
        width: int,
        attention: Attention,
        cross_attention: Attention,
        feedforward: FeedForward,
        norm: str,
        dropout: float,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.attention_residual = Residual(width, norm, dropout)
        self.cross_attention = cross_attention
        self.cross_residual = Residual(width, norm, dropout)
        self.feedforward = feedforward
        self.feedforward_residual = Residual(width, norm, dropout)

    def forward(
        self,
        x_BTD: Tensor,
        memory_BSD: Tensor,
        bias_11TT: Tensor | None,
        bias_B11S: Tensor,
        target: Packing | None = None,
        source: Packing | None = None,
    ) -> Tensor:
        """The layer's states of all prefixes at once; `bias_11TT` hides the future, `bias_B11S` padding.

        Without `bias_11TT` attention hides the future by itself.
        With packings of `target` and `source`, x_ND in and out, and a packed memory.
        """
        y_BTD = self.attention_residual.before(x_BTD)
        if bias_11TT is None:
            y_BTD = self.attention.causal(y_BTD)
        else:
            y_BTD = self.attention(y_BTD, y_BTD, bias_11TT, target, target, causal=True)
        x_BTD = self.attention_residual.after(x_BTD, y_BTD)
        y_BTD = self.cross_residual.before(x_BTD)
        y_BTD = self.cross_attention(y_BTD, memory_BSD, bias_B11S, target, source)
        return self.last(self.cross_residual.after(x_BTD, y_BTD))

    def step(
        self, x_B1D: Tensor, past: Sequence[Tensor], memory: Sequence[Tensor], bias_B11S: Tensor, start: int
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The state of one more token, and keys and values of the past with this token's added.

        `past` is empty or what the step before gave; `memory` is what cross-attention remembers of the source.
        """
        y_B1D = self.attention_residual.before(x_B1D)
        k_BHTE, v_BHTE = self.attention.remember(y_B1D, start)
        if past:
            k_BHTE, v_BHTE = torch.cat([past[0], k_BHTE], dim=2), torch.cat([past[1], v_BHTE], dim=2)
        x_B1D = self.attention_residual.after(x_B1D, self.attention.attend(y_B1D, k_BHTE, v_BHTE, None, start))
        return self.rest(x_B1D, memory[0], memory[1], bias_B11S), (k_BHTE, v_BHTE)

    def rest(self, x_BTD: Tensor, k_BHSE: Tensor, v_BHSE: Tensor, bias_B11S: Tensor) -> Tensor:
        """Cross-attention and feed-forward.

        Keys and values may be of fewer sentences than there are rows: the adjacent hypotheses of one sentence then
        attend as so many queries, and nothing of the source is copied for them.
        """
        y_BTD = self.cross_residual.before(x_BTD)
        queries = y_BTD.reshape(k_BHSE.size(0), -1, y_BTD.size(-1))
        y_BTD = self.cross_attention.attend(queries, k_BHSE, v_BHSE, bias_B11S).view_as(x_BTD)
        return self.last(self.cross_residual.after(x_BTD, y_BTD))

    def last(self, x_BTD: Tensor) -> Tensor:
        """The feed-forward part."""
        return self.feedforward_residual.after(x_BTD, self.feedforward(self.feedforward_residual.before(x_BTD)))
