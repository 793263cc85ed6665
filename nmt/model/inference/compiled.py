"""The Transformer for inference on a processor: torch's matrix products, and compiled loops for all between them.

S sentences · L source · N tokens of all sources · R rows while stepping: sentences × hypotheses · D width
V vocabulary
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nmt.model.attention.core import Attention
from nmt.model.inference import compiling, loops
from nmt.model.inference.buffers import Numbers
from nmt.model.inference.linear import Arithmetic
from nmt.model.inference.products import Floats, Rows, Sums, Wholes, product
from nmt.model.inference.slots import Slots
from nmt.model.inference.transformer import FastTransformer
from nmt.model.layers import DecoderLayer, EncoderLayer, FeedForward, Residual
from nmt.model.position.core import Position
from nmt.model.seq2seq import State
from nmt.model.transformer import Transformer

_Read = tuple[Numbers | None, Numbers | None, Numbers | None, Numbers | None]
_BLOCK = 512  # source tokens whose states stay in the processor's caches


class CompiledTransformer:
    """What `model` computes, from copies of its weights: `encode`, `start` and `step` as of Seq2Seq.

    A step uses up the state that it is given, and the logits that the same thread was given before. A sentence's
    results do not depend on who shares its batch, to the last digit: every loop goes row by row, sources are read at
    their own length, and nothing is padded.
    """

    def __init__(self, model: Transformer, arithmetic: Arithmetic) -> None:
        self.encoder_side, self.decoder_side = model.encoder, model.decoder
        encoder, decoder = model.encoder.layers, model.decoder.layers
        residuals = [
            residual for layer in encoder for residual in (layer.attention_residual, layer.feedforward_residual)
        ]
        self.encoder_joints = _joints(residuals, model.encoder.norm)
        residuals = [
            residual
            for layer in decoder
            for residual in (layer.attention_residual, layer.cross_residual, layer.feedforward_residual)
        ]
        self.decoder_joints = _joints(residuals, model.decoder.norm)
        self.encoder = [_EncoderLayer(layer, arithmetic) for layer in encoder]
        self.decoder = [_DecoderLayer(layer, arithmetic) for layer in decoder]
        crosses = [layer.cross_attention for layer in decoder]
        weights = [weight for cross in crosses for weight in (cross.key.weight, cross.value.weight)]
        self.remember = product(torch.cat(weights), None, arithmetic)
        self.output = product(model.output_weight_VD, None, arithmetic)

    @staticmethod
    def fits(model: object) -> bool:
        """Whether it can be: as for FastTransformer, with positions that only embed, and rectified linear units."""
        if not compiling.AVAILABLE or not isinstance(model, Transformer) or not FastTransformer.fits(model):
            return False
        attentions = [part for part in model.modules() if isinstance(part, Attention)]
        inners = [part for part in model.modules() if isinstance(part, FeedForward)]
        return all(type(part.position).rotate is Position.rotate for part in attentions) and all(
            part.activation is torch.relu for part in inners
        )

    @torch.no_grad()
    def encode(self, src_SL: Tensor, keep_SL: Tensor) -> Tensor:
        """The memory_SLD of sources of which `keep_SL` tells the real tokens; what is none stays zero."""
        few = max(_BLOCK // src_SL.size(1), 1)
        blocks = zip(src_SL.split(few), keep_SL.split(few), strict=True)
        return torch.cat([self._encode(src, keep) for src, keep in blocks])

    def _encode(self, src_SL: Tensor, keep_SL: Tensor) -> Tensor:
        x_SLD = self.encoder_side.embed(src_SL).float()
        x_ND = x_SLD[keep_SL]
        x, (begin_S, length_S) = x_ND.numpy(), _extents(keep_SL)
        joints = iter(self.encoder_joints)
        z = next(joints)(x, None, self.encoder[0].attention.project)
        for layer, following in zip(self.encoder, [*self.encoder[1:], None], strict=True):
            z = layer.attention.within(z, len(x), begin_S, length_S)
            z = next(joints)(x, layer.attention.output(z), layer.inner)
            z = layer.rectified(z, len(x))
            z = next(joints)(x, layer.outer(z), following.attention.project if following else None)
        memory_SLD = torch.zeros_like(x_SLD)
        memory_SLD[keep_SL] = z.tensor_RI
        return memory_SLD

    @torch.no_grad()
    def start(self, memory_SLD: Tensor, keep_SL: Tensor, beams: int = 1) -> Slots:
        """The source's keys and values for all decoder layers, and an empty past."""
        begin_S, length_S = _extents(keep_SL)
        sentences, width = len(keep_SL), memory_SLD.size(2)
        z = _passed_on(memory_SLD[keep_SL].numpy(), self.remember)
        memory_N2SLD = torch.empty(len(self.decoder), 2, sentences, int(length_S.max(initial=0)), width)
        loops.spread(*self.remember(z), begin_S, length_S, memory_N2SLD.flatten(0, 1).numpy())
        return Slots(
            sentences=(torch.arange(sentences),),
            rows=(torch.empty(sentences * beams, 0, dtype=torch.int32),),
            beams=beams,
            memory_N2SLD=memory_N2SLD,
            length_S=torch.from_numpy(length_S),
            cache_N2STPD=torch.empty(len(self.decoder), 2, sentences, 0, beams, width),
        )

    @torch.no_grad()
    def step(self, state: State, last_R: Tensor) -> tuple[Tensor, Slots]:
        """The logits_RV after the tokens `last_R`, and the state that remembers them."""
        assert isinstance(state, Slots)
        cache = state.with_room()
        slot_S, past_RT, length_S = state.sentences[0].numpy(), state.rows[0].numpy(), state.length_S.numpy()
        caches, memories = cache.numpy(), state.memory_N2SLD.numpy()
        x = self.decoder_side.embed(last_R[:, None], state.step).squeeze(1).float().numpy()
        joints = iter(self.decoder_joints)
        z = next(joints)(x, None, self.decoder[0].attention.project)
        for i, (layer, following) in enumerate(zip(self.decoder, [*self.decoder[1:], None], strict=True)):
            z = layer.attention.past(z, len(x), state.step, state.beams, slot_S, past_RT, caches[i])
            z = next(joints)(x, layer.attention.output(z), layer.cross.project)
            z = layer.cross.source(z, len(x), state.beams, slot_S, length_S, memories[i])
            z = next(joints)(x, layer.cross.output(z), layer.inner)
            z = layer.rectified(z, len(x))
            z = next(joints)(x, layer.outer(z), following.attention.project if following else self.output)
        return self.output.scaled(z, len(x)), state.stepped(cache)


def _extents(keep_SL: Tensor) -> tuple[Numbers, Numbers]:
    """Where among all real tokens each sentence begins, and how many it has."""
    length_S = keep_SL.sum(1).numpy()
    return np.cumsum(length_S) - length_S, length_S


def _passed_on(x_ND: Numbers, reader: Floats | Wholes) -> Rows:
    """`x` as `reader` reads it."""
    z = reader.rows(len(x_ND))
    loops.add_and_norm(x_ND, *(None,) * 8, 0.0, z.z_RI, z.scale_R)
    return z


class _Joint:
    """What stands between two parts: the residual sum, the LayerNorm after it, and the one before the next part."""

    def __init__(self, after: nn.Module | None, before: nn.Module | None) -> None:
        norms = [norm for norm in (after, before) if isinstance(norm, nn.LayerNorm)]
        self.eps = norms[0].eps if norms else 0.0
        self.after, self.before = _arrays(after), _arrays(before)

    def __call__(self, x_RD: Numbers, sums: Sums | None, reader: Floats | Wholes | None) -> Rows:
        """`x` becomes the sum; returns what the next part reads, float32 where none is named."""
        rows = _plain_rows(x_RD.shape) if reader is None else reader.rows(len(x_RD))
        y: _Read = (None, None, None, None) if sums is None else sums
        loops.add_and_norm(x_RD, *y, *self.after, *self.before, self.eps, rows.z_RI, rows.scale_R)
        return rows


def _joints(residuals: Sequence[Residual], last: nn.Module) -> list[_Joint]:
    """Before the first part, between each two, and after the last one."""
    after = [None, *(residual.norm if residual.post else None for residual in residuals)]
    before = [*(None if residual.post else residual.norm for residual in residuals), last]
    return [_Joint(a, b) for a, b in zip(after, before, strict=True)]


def _arrays(norm: nn.Module | None) -> tuple[Numbers | None, Numbers | None]:
    """Weights and bias of a LayerNorm, copied."""
    if not isinstance(norm, nn.LayerNorm):
        return None, None
    weight_D, bias_D = (parameter.detach().float().numpy().copy() for parameter in (norm.weight, norm.bias))
    return weight_D, bias_D


def _plain_rows(shape: Any) -> Rows:
    tensor_RD = torch.empty(shape)
    return Rows(tensor_RD.numpy(), None, tensor_RD)


class _Attention:
    """The products of one attention, and the loops between them. Queries come divided by √E, through their weights."""

    def __init__(self, attention: Attention, arithmetic: Arithmetic, own_keys: bool) -> None:
        self.heads = attention.heads
        query = attention.query.weight / math.sqrt(attention.query.weight.size(0) // self.heads)
        parts = [query, attention.key.weight, attention.value.weight] if own_keys else [query]
        self.project = product(torch.cat(parts), None, arithmetic)
        self.output = product(attention.output.weight, None, arithmetic)

    def within(self, z: Rows, count: int, begin_S: Numbers, length_S: Numbers) -> Rows:
        """Of tokens to all of their sentence."""
        mixed = self.output.rows(count)
        loops.attend_within(*self.project(z), self.heads, begin_S, length_S, mixed.z_RI, mixed.scale_R)
        return mixed

    def past(
        self, z: Rows, count: int, step: int, beams: int, slot_S: Numbers, past_RT: Numbers, cache: Numbers
    ) -> Rows:
        """Of new tokens to those before them and to themselves; what they remember is stored."""
        mixed = self.output.rows(count)
        loops.attend_to_past(
            *self.project(z), self.heads, step, beams, slot_S, past_RT, cache[0], cache[1], mixed.z_RI, mixed.scale_R
        )
        return mixed

    def source(self, z: Rows, count: int, beams: int, slot_S: Numbers, length_S: Numbers, memory: Numbers) -> Rows:
        """Of new tokens to their source."""
        mixed = self.output.rows(count)
        loops.attend_to_source(
            *self.project(z), self.heads, beams, slot_S, length_S, memory[0], memory[1], mixed.z_RI, mixed.scale_R
        )
        return mixed


class _FeedForward:
    def __init__(self, part: FeedForward, arithmetic: Arithmetic) -> None:
        self.inner = product(part.inner.weight, part.inner.bias, arithmetic)
        self.outer = product(part.outer.weight, part.outer.bias, arithmetic)

    def rectified(self, z: Rows, count: int) -> Rows:
        """What the outer product reads."""
        between = self.outer.rows(count)
        loops.rectify(*self.inner(z), between.z_RI, between.scale_R, count)
        return between


class _EncoderLayer(_FeedForward):
    def __init__(self, layer: EncoderLayer, arithmetic: Arithmetic) -> None:
        super().__init__(layer.feedforward, arithmetic)
        self.attention = _Attention(layer.attention, arithmetic, own_keys=True)


class _DecoderLayer(_FeedForward):
    def __init__(self, layer: DecoderLayer, arithmetic: Arithmetic) -> None:
        super().__init__(layer.feedforward, arithmetic)
        self.attention = _Attention(layer.attention, arithmetic, own_keys=True)
        self.cross = _Attention(layer.cross_attention, arithmetic, own_keys=False)
