"""The Transformer for inference on a processor: fewer and larger products, caches that stay where they are.

S sentences · L source · R rows while stepping: sentences × hypotheses · P hypotheses of a sentence · D width
N layers · 2 keys and values · H heads · E width of a head · M sentences × heads · U places used of a cache
V vocabulary · 1 broadcast
"""

from __future__ import annotations

from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from nmt.model.attention.core import Attention, hide
from nmt.model.attention.dot import DotAttention
from nmt.model.inference.attention import FEWEST, Projections, for_heads, mix
from nmt.model.inference.linear import Arithmetic
from nmt.model.inference.norms import Norm, ResidualSum
from nmt.model.inference.rowwise import fits, linear
from nmt.model.inference.state import Cached
from nmt.model.layers import DecoderLayer, EncoderLayer, FeedForward
from nmt.model.position.core import Position
from nmt.model.seq2seq import State
from nmt.model.transformer import Transformer

_BLOCK = 512  # source tokens whose states stay in the processor's caches
_LANES = 64  # numbers that torch computes at once, on any processor; at most so many


def places(length: int) -> int:
    """Places that a source of `length` tokens is given; the rest is padding.

    Among sources of as many places, attention is computed in the same shapes whatever the batch.
    """
    return max(-(-length // 8) * 8, FEWEST)


def usual(model: object) -> TypeGuard[Transformer]:
    """Whether it is a Transformer whose attention and positions are of kinds known to inference forms."""
    if type(model) is not Transformer:
        return False
    attentions = [part for part in model.modules() if isinstance(part, Attention)]
    return all(
        type(part) is DotAttention
        and part.key.weight.shape == part.value.weight.shape
        and type(part.position).bias is Position.bias
        for part in attentions
    )


class FastTransformer:
    """What `model` computes, from copies of its weights: `encode`, `start` and `step` as of Seq2Seq.

    A step uses up the state that it is given.
    """

    def __init__(self, model: Transformer, arithmetic: Arithmetic) -> None:
        self.encoder_side, self.decoder_side = model.encoder, model.decoder
        self.encoder = [_EncoderLayer(layer, arithmetic) for layer in model.encoder.layers]
        self.decoder = [_DecoderLayer(layer, arithmetic) for layer in model.decoder.layers]
        self.encoder_norm, self.decoder_norm = Norm(model.encoder.norm), Norm(model.decoder.norm)
        crosses = [layer.cross_attention for layer in model.decoder.layers]
        weights = [weight for cross in crosses for weight in (cross.key.weight, cross.value.weight)]
        self.remember = linear(torch.cat(weights), None, arithmetic)
        self.heads = crosses[0].heads
        self.output = linear(model.output_weight_VD, None, arithmetic)
        self.shares = _rowwise(model, arithmetic)
        """Whether sentences of as many `places` may share a batch and change no digit of each other's results."""

    @staticmethod
    def fits(model: object) -> bool:
        """Whether it can be: a Transformer on a processor whose attention and positions are of kinds known here."""
        return usual(model) and model.output_weight_VD.device.type == "cpu"

    def encode(self, src_SL: Tensor, keep_SL: Tensor) -> Tensor:
        """The memory_SLD of sources of which `keep_SL` tells the real tokens, with `places` for each."""
        few = max(_BLOCK // src_SL.size(1), 1)
        blocks = zip(src_SL.split(few), keep_SL.split(few), strict=True)
        return torch.cat([self._encode(src, keep) for src, keep in blocks])

    def _encode(self, src_SL: Tensor, keep_SL: Tensor) -> Tensor:
        more = places(src_SL.size(1)) - src_SL.size(1)
        bias_M1L = for_heads(hide(pad(keep_SL, (0, more))[:, None], torch.float32), self.heads)
        x_SLD = pad(self.encoder_side.embed(src_SL), (0, 0, 0, more))  # the table of positions may end before
        for layer in self.encoder:
            x_SLD = layer(x_SLD, bias_M1L)
        return self.encoder_norm(x_SLD)

    def start(self, memory_SLD: Tensor, keep_SL: Tensor, beams: int = 1) -> Cached:
        """The source's keys and values for all decoder layers, and an empty past."""
        length = places(memory_SLD.size(1))
        memory_SLD = pad(memory_SLD, (0, 0, 0, length - memory_SLD.size(1)))
        keep_SL = pad(keep_SL, (0, length - keep_SL.size(1)))
        memory = self.remember(memory_SLD).view(len(keep_SL), length, len(self.decoder), 2, self.heads, -1)
        memory_N2SHLE = memory.permute(2, 3, 0, 4, 1, 5).contiguous()
        return Cached(
            sentences=(hide(keep_SL[:, None], memory.dtype),),
            rows=(),
            beams=beams,
            memory_N2SHLE=memory_N2SHLE,
            cache_N2SHUE=memory_N2SHLE.new_empty(*memory_N2SHLE.shape[:4], 0, memory_N2SHLE.size(5)),
        )

    def step(self, state: State, last_R: Tensor) -> tuple[Tensor, Cached]:
        """The logits_RV after the tokens `last_R`, and the state that remembers them."""
        assert isinstance(state, Cached)
        cache_N2SHUE, used = state.with_room(), state.used + state.beams
        dtype, sentences = cache_N2SHUE.dtype, cache_N2SHUE.size(2)
        hidden_M1L = for_heads(state.sentences[0], self.heads)
        past_RU = state.own_past(len(last_R))
        seen_MPU = None if past_RU is None else for_heads(past_RU.view(sentences, -1, used).to(dtype), self.heads)
        fresh = cache_N2SHUE[..., state.used : used, :].unbind()
        pasts = cache_N2SHUE[..., :used, :].flatten(2, 3).unbind()
        memories = state.memory_N2SHLE.flatten(2, 3).unbind()
        x_RD = self.decoder_side.embed(last_R[:, None], state.step).squeeze(1)
        for layer, new, past, memory in zip(self.decoder, fresh, pasts, memories, strict=True):
            x_RD = layer(x_RD, state.step, new, past, seen_MPU, memory, hidden_M1L)
        logits_RV = self.output(self.decoder_norm(x_RD))
        rows = () if past_RU is None else (past_RU,)
        return logits_RV, Cached(
            state.sentences, rows, state.beams, state.step + 1, state.memory_N2SHLE, cache_N2SHUE, used
        )


def _rowwise(model: Transformer, arithmetic: Arithmetic) -> bool:
    """Whether all that is computed for a row is the same in any company.

    torch computes the last numbers of a tensor, which fill no vector register, by other instructions: where a
    nonlinearity is more than a choice, rows have to fill registers.
    """
    inners = [part for part in model.modules() if isinstance(part, FeedForward)]
    inputs = {part.weight.size(1) for part in model.modules() if isinstance(part, nn.Linear)}
    return all(fits(size, arithmetic) for size in inputs) and all(
        part.activation is torch.relu or len(part.inner.weight) % _LANES == 0 for part in inners
    )


class _FeedForward:
    """Two linear layers with a nonlinearity between."""

    def __init__(self, part: FeedForward, arithmetic: Arithmetic) -> None:
        self.inner = linear(part.inner.weight, part.inner.bias, arithmetic)
        self.outer = linear(part.outer.weight, part.outer.bias, arithmetic)
        self.activation = torch.relu_ if part.activation is torch.relu else part.activation

    def __call__(self, x: Tensor) -> Tensor:
        return self.outer(self.activation(self.inner(x)))


class _EncoderLayer:
    def __init__(self, layer: EncoderLayer, arithmetic: Arithmetic) -> None:
        self.attention = Projections(layer.attention, arithmetic, own_keys=True)
        self.attention_residual = ResidualSum(layer.attention_residual)
        self.feedforward = _FeedForward(layer.feedforward, arithmetic)
        self.feedforward_residual = ResidualSum(layer.feedforward_residual)

    def __call__(self, x_SLD: Tensor, bias_M1L: Tensor) -> Tensor:
        """The layer's states; `bias_M1L` hides padding."""
        qkv_3SHLE = self.attention.split(self.attention_residual.before(x_SLD), len(x_SLD))
        if self.attention.turns:
            qkv_3SHLE = self.attention.turned(qkv_3SHLE)
        q_SHLE, k_SHLE, v_SHLE = qkv_3SHLE
        y_MLE = mix(q_SHLE, k_SHLE.flatten(0, 1), v_SHLE.flatten(0, 1), bias_M1L)
        x_SLD = self.attention_residual.after(x_SLD, self.attention.merge(y_MLE, x_SLD))
        return self.feedforward_residual.after(x_SLD, self.feedforward(self.feedforward_residual.before(x_SLD)))


class _DecoderLayer:
    def __init__(self, layer: DecoderLayer, arithmetic: Arithmetic) -> None:
        self.attention = Projections(layer.attention, arithmetic, own_keys=True)
        self.attention_residual = ResidualSum(layer.attention_residual)
        self.cross = Projections(layer.cross_attention, arithmetic, own_keys=False)
        self.cross_residual = ResidualSum(layer.cross_residual)
        self.feedforward = _FeedForward(layer.feedforward, arithmetic)
        self.feedforward_residual = ResidualSum(layer.feedforward_residual)

    def __call__(
        self,
        x_RD: Tensor,
        place: int,
        new_2SHPE: Tensor,
        past_2MUE: Tensor,
        seen_MPU: Tensor | None,
        memory_2MLE: Tensor,
        hidden_M1L: Tensor,
    ) -> Tensor:
        """The states of one more token of every hypothesis, at `place`; its keys and values are written into `new`."""
        sentences = new_2SHPE.size(1)
        qkv_3SHPE = self.attention.split(self.attention_residual.before(x_RD), sentences)
        if self.attention.turns:
            qkv_3SHPE = self.attention.turned(qkv_3SHPE.unsqueeze(-2), place).squeeze(-2)
        new_2SHPE.copy_(qkv_3SHPE[1:])
        y_MPE = mix(qkv_3SHPE[0], past_2MUE[0], past_2MUE[1], seen_MPU)
        x_RD = self.attention_residual.after(x_RD, self.attention.merge(y_MPE, x_RD))
        (q_SHPE,) = self.cross.split(self.cross_residual.before(x_RD), sentences)
        y_MPE = mix(q_SHPE, memory_2MLE[0], memory_2MLE[1], hidden_M1L)
        x_RD = self.cross_residual.after(x_RD, self.cross.merge(y_MPE, x_RD))
        return self.feedforward_residual.after(x_RD, self.feedforward(self.feedforward_residual.before(x_RD)))
