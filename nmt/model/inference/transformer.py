"""The Transformer for inference on a processor: fewer and larger products, caches that stay where they are.

S sentences · L source · R rows while stepping: sentences × hypotheses · P hypotheses of a sentence · D width
H heads · E width of a head · U places used of a cache · C width of keys and values together · V vocabulary
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import layer_norm, scaled_dot_product_attention

from nmt.model.attention.core import Attention, hide
from nmt.model.attention.dot import DotAttention
from nmt.model.inference.linear import Arithmetic, Linear, pack
from nmt.model.inference.state import Cached
from nmt.model.layers import DecoderLayer, EncoderLayer, FeedForward, Residual
from nmt.model.position.core import Position
from nmt.model.seq2seq import State
from nmt.model.transformer import Side, Transformer


class FastTransformer:
    """What `model` computes, from copies of its weights: `encode`, `start` and `step` as of Seq2Seq.

    A step uses up the state that it is given.
    """

    def __init__(self, model: Transformer, arithmetic: Arithmetic) -> None:
        self.encoder_side, self.decoder_side = model.encoder, model.decoder
        self.encoder = [_EncoderLayer(layer, arithmetic) for layer in model.encoder.layers]
        self.decoder = [_DecoderLayer(layer, arithmetic) for layer in model.decoder.layers]
        self.encoder_norm, self.decoder_norm = _Norm.last(model.encoder), _Norm.last(model.decoder)
        crosses = [layer.cross_attention for layer in model.decoder.layers]
        weights = [weight for cross in crosses for weight in (cross.key.weight, cross.value.weight)]
        self.remember = pack(torch.cat(weights), None, arithmetic)
        self.widths = [cross.key.weight.size(0) + cross.value.weight.size(0) for cross in crosses]
        self.output = pack(model.output_weight_VD, None, arithmetic)

    @staticmethod
    def fits(model: object) -> bool:
        """Whether it can be: a Transformer whose attention and positions are of the kinds that this file knows."""
        if type(model) is not Transformer or model.output_weight_VD.device.type != "cpu":
            return False
        parts = [part for part in model.modules() if isinstance(part, Attention | Position)]
        return all(
            type(part) is DotAttention if isinstance(part, Attention) else type(part).bias is Position.bias
            for part in parts
        )

    def encode(self, src_SL: Tensor, keep_SL: Tensor) -> Tensor:
        """The memory_SLD of sources of which `keep_SL` tells the real tokens."""
        x_SLD = self.encoder_side.embed(src_SL)
        bias_S11L = _padding(keep_SL, x_SLD)
        for layer in self.encoder:
            x_SLD = layer(x_SLD, bias_S11L)
        return self.encoder_norm(x_SLD)

    def start(self, memory_SLD: Tensor, keep_SL: Tensor, beams: int = 1) -> Cached:
        """The source's keys and values for all decoder layers, and an empty past."""
        memory_SLC = self.remember(memory_SLD)
        bias_S11L = _padding(keep_SL, memory_SLC)
        nothing = tuple(memory_SLC.new_empty(len(keep_SL), 0, layer.attention.memory_width) for layer in self.decoder)
        sentences = (memory_SLC,) if bias_S11L is None else (memory_SLC, bias_S11L)
        return Cached(sentences=sentences, rows=(), beams=beams, caches=nothing)

    def step(self, state: State, last_R: Tensor) -> tuple[Tensor, Cached]:
        """The logits_RV after the tokens `last_R`, and the state that remembers them."""
        assert isinstance(state, Cached)
        memory_SLC = state.sentences[0]
        hidden_S11L = state.sentences[1] if len(state.sentences) > 1 else None
        sentences, length, _ = memory_SLC.shape
        past_RU = state.own_past(len(last_R))
        seen_S1PU = None if past_RU is None else past_RU.view(sentences, 1, state.beams, -1).to(memory_SLC.dtype)
        caches = state.with_room(length)
        x_RD = self.decoder_side.embed(last_R[:, None], state.step)[:, 0]
        for layer, cache_SUC, cross_SLC in zip(self.decoder, caches, memory_SLC.split(self.widths, -1), strict=True):
            x_RD = layer(x_RD, cache_SUC, state, seen_S1PU, cross_SLC, hidden_S11L)
        logits_RV = self.output(self.decoder_norm(x_RD))
        rows = () if past_RU is None else (past_RU,)
        used = state.used + state.beams
        return logits_RV, Cached(state.sentences, rows, state.beams, state.step + 1, caches, used)


class _Norm:
    """A LayerNorm; of nothing, the identity."""

    def __init__(self, norm: torch.nn.Module) -> None:
        self.shape: tuple[int, ...] = ()
        if isinstance(norm, torch.nn.LayerNorm):
            self.shape, self.eps = norm.normalized_shape, norm.eps
            self.weight_D, self.bias_D = norm.weight.detach().clone(), norm.bias.detach().clone()

    @classmethod
    def last(cls, side: Side[EncoderLayer] | Side[DecoderLayer]) -> _Norm:
        """That of a side's end, which only pre-norm has."""
        return cls(side.norm)

    def __call__(self, x: Tensor) -> Tensor:
        return layer_norm(x, self.shape, self.weight_D, self.bias_D, self.eps) if self.shape else x


class _Residual:
    """The sum of a part's input and output, its LayerNorm before or after."""

    def __init__(self, residual: Residual) -> None:
        norm, nothing = _Norm(residual.norm), _Norm(torch.nn.Identity())
        self.before, self.finish = (nothing, norm) if residual.post else (norm, nothing)

    def after(self, x: Tensor, y: Tensor) -> Tensor:
        return self.finish(x + y)


class _Attention:
    """Projections of one attention layer; queries, keys and values in one product where they read the same."""

    def __init__(self, attention: Attention, arithmetic: Arithmetic, together: bool) -> None:
        query, key, value = (part.weight for part in (attention.query, attention.key, attention.value))
        self.heads, self.position = attention.heads, attention.position
        self.key_width, self.value_width = key.size(0), value.size(0)
        self.memory_width = self.key_width + self.value_width
        self.project: Linear = pack(torch.cat([query, key, value]) if together else query, None, arithmetic)
        self.output = pack(attention.output.weight, None, arithmetic)

    def split(self, x_SKD: Tensor) -> Tensor:
        """Heads apart: SKD to SHKE."""
        return x_SKD.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def mix(self, q_SPD: Tensor, memory_SUC: Tensor, bias: Tensor | None) -> Tensor:
        """The mixture of the memory's values for each query, in the model's width."""
        key_SUD, value_SUD = memory_SUC.split([self.key_width, self.value_width], -1)
        mixed_SHPE = scaled_dot_product_attention(self.split(q_SPD), self.split(key_SUD), self.split(value_SUD), bias)
        return self.output(mixed_SHPE.transpose(1, 2).flatten(2))

    def rotated(self, x_SKD: Tensor, start: int) -> Tensor:
        """Queries or keys as the position encoding wants them compared."""
        if type(self.position).rotate is Position.rotate:
            return x_SKD
        return self.position.rotate(self.split(x_SKD), start).transpose(1, 2).flatten(2)

    def rotated_rows(self, x_SPD: Tensor, place: int) -> Tensor:
        """The same for hypotheses side by side, whose newest tokens all stand at `place`."""
        if type(self.position).rotate is Position.rotate:
            return x_SPD
        return self.rotated(x_SPD.reshape(-1, 1, x_SPD.size(-1)), place).view(x_SPD.shape)


class _FeedForward:
    def __init__(self, part: FeedForward, arithmetic: Arithmetic) -> None:
        self.inner = pack(part.inner.weight, part.inner.bias, arithmetic)
        self.outer = pack(part.outer.weight, part.outer.bias, arithmetic)
        self.activation = torch.relu_ if part.activation is torch.relu else part.activation

    def __call__(self, x: Tensor) -> Tensor:
        return self.outer(self.activation(self.inner(x)))


class _EncoderLayer:
    def __init__(self, layer: EncoderLayer, arithmetic: Arithmetic) -> None:
        self.attention = _Attention(layer.attention, arithmetic, together=True)
        self.attention_residual = _Residual(layer.attention_residual)
        self.feedforward = _FeedForward(layer.feedforward, arithmetic)
        self.feedforward_residual = _Residual(layer.feedforward_residual)

    def __call__(self, x_SLD: Tensor, bias_S11L: Tensor | None) -> Tensor:
        """The layer's states; `bias_S11L` hides padding."""
        own = self.attention
        q_SLD, key_SLD, value_SLD = own.project(self.attention_residual.before(x_SLD)).split(
            [own.key_width, own.key_width, own.value_width], -1
        )
        memory_SLC = torch.cat([own.rotated(key_SLD, 0), value_SLD], -1)
        x_SLD = self.attention_residual.after(x_SLD, own.mix(own.rotated(q_SLD, 0), memory_SLC, bias_S11L))
        return self.feedforward_residual.after(x_SLD, self.feedforward(self.feedforward_residual.before(x_SLD)))


class _DecoderLayer:
    def __init__(self, layer: DecoderLayer, arithmetic: Arithmetic) -> None:
        self.attention = _Attention(layer.attention, arithmetic, together=True)
        self.attention_residual = _Residual(layer.attention_residual)
        self.cross = _Attention(layer.cross_attention, arithmetic, together=False)
        self.cross_residual = _Residual(layer.cross_residual)
        self.feedforward = _FeedForward(layer.feedforward, arithmetic)
        self.feedforward_residual = _Residual(layer.feedforward_residual)

    def __call__(
        self,
        x_RD: Tensor,
        cache_SUC: Tensor,
        state: Cached,
        seen_S1PU: Tensor | None,
        cross_SLC: Tensor,
        hidden_S11L: Tensor | None,
    ) -> Tensor:
        """The states of one more token of every hypothesis, which is written into the cache."""
        sentences, own = cross_SLC.size(0), self.attention
        used = state.used + state.beams
        qkv_SPD = own.project(self.attention_residual.before(x_RD)).view(sentences, state.beams, -1)
        q_SPD, key_SPD, value_SPD = qkv_SPD.split([own.key_width, own.key_width, own.value_width], -1)
        cache_SUC[:, state.used : used, : own.key_width] = own.rotated_rows(key_SPD, state.step)
        cache_SUC[:, state.used : used, own.key_width :] = value_SPD
        y_SPD = own.mix(own.rotated_rows(q_SPD, state.step), cache_SUC[:, :used], seen_S1PU)
        x_RD = self.attention_residual.after(x_RD, y_SPD.view_as(x_RD))
        q_SPD = self.cross.project(self.cross_residual.before(x_RD)).view(sentences, state.beams, -1)
        x_RD = self.cross_residual.after(x_RD, self.cross.mix(q_SPD, cross_SLC, hidden_S11L).view_as(x_RD))
        return self.feedforward_residual.after(x_RD, self.feedforward(self.feedforward_residual.before(x_RD)))


def _padding(keep_SL: Tensor, like: Tensor) -> Tensor | None:
    """What hides padding; None where there is none."""
    return None if bool(keep_SL.all()) else hide(keep_SL[:, None, None], like.dtype)
