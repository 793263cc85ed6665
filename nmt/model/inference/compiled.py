"""The Transformer for inference on a processor, compiled: a step of the decoder is one call (see passes.py).

S sentences · L source · N tokens of all sources · R rows while stepping: sentences × hypotheses · D width
V vocabulary · M joints
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from nmt.model import compiling
from nmt.model.attention.core import Attention
from nmt.model.inference import passes
from nmt.model.inference.buffers import Buffers, Numbers
from nmt.model.inference.linear import Arithmetic
from nmt.model.inference.passes import Decoder, Encoder, Joints
from nmt.model.inference.products import STEP, Product, known, product, row_scales
from nmt.model.inference.slots import Slots
from nmt.model.inference.transformer import FastTransformer
from nmt.model.layers import EPSILON, DecoderLayer, EncoderLayer, FeedForward, Residual
from nmt.model.position.core import Position
from nmt.model.seq2seq import State
from nmt.model.transformer import Side, Transformer

_BLOCK = 512  # source tokens whose states stay in the processor's caches
_UNSEEN = np.empty((0, 0), np.float32)
_buffers = Buffers()


class CompiledTransformer:
    """What `model` computes, from copies of its weights: `encode`, `start`, `step` as of Seq2Seq.

    Embeddings are copied only of a model that learns.

    A step uses up the state that it is given, and the logits that the same thread was given before. A sentence's
    results do not depend on who shares its batch, to the last digit: every loop goes row by row, sources are read at
    their own length, and nothing is padded.
    """

    def __init__(self, model: Transformer, arithmetic: Arithmetic) -> None:
        self.encoder_side, self.decoder_side = model.encoder, model.decoder
        encoder, decoder = list(model.encoder.layers), list(model.decoder.layers)
        crosses = [layer.cross_attention for layer in decoder]
        self.watched = max(len(crosses) - 2, 0)
        self.heads, self.width = crosses[0].heads, crosses[0].key.weight.size(0)
        self.eps = np.float32(EPSILON)
        embedding_VD = model.decoder.embedding.weight.detach().float()
        # numpy pins what it views, but many processes that keep a part of a model each let go of the whole
        learns = any(weight.requires_grad for weight in model.parameters())
        self.embedding_VD = (embedding_VD.clone() if learns else embedding_VD).numpy()
        self.scale = np.float32(model.decoder.embedding.scale)
        self.places: dict[int, Numbers] = {}
        self.encoder = Encoder(*_own(encoder, arithmetic), *_feed_forward(encoder, arithmetic), _joints(model.encoder))
        self.decoder = Decoder(
            *_own(decoder, arithmetic),
            product([_query(cross) for cross in crosses], [None] * len(crosses), arithmetic),
            product([cross.output.weight for cross in crosses], [None] * len(crosses), arithmetic),
            *_feed_forward(decoder, arithmetic),
            _joints(model.decoder),
            product([model.output_weight_VD], [None], arithmetic),
        )
        weights = [weight for cross in crosses for weight in (cross.key.weight, cross.value.weight)]
        self.remember = product([torch.cat(weights)], [None], arithmetic)

    @staticmethod
    def fits(model: object, arithmetic: Arithmetic = "float32") -> bool:
        """Whether it can be: as for FastTransformer, with positions that only embed, rectified linear units, heads that
        are together as wide as the model, and widths that are multiples of `STEP`."""
        if not compiling.AVAILABLE or not isinstance(model, Transformer) or not FastTransformer.fits(model):
            return False
        attentions = [part for part in model.modules() if isinstance(part, Attention)]
        inners = [part for part in model.modules() if isinstance(part, FeedForward)]
        widths = {size for part in attentions for size in part.query.weight.shape}
        return (
            known(arithmetic)
            and len(widths) == 1  # the heads together are as wide as the model
            and len({part.heads for part in attentions}) == 1
            and all(size % STEP == 0 for size in (*widths, *(len(part.inner.weight) for part in inners)))
            and all(type(part.position).rotate is Position.rotate for part in attentions)
            and all(part.activation is torch.relu for part in inners)
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
        memory_ND = torch.empty_like(x_ND)
        scale_N, inputs = row_scales(self.encoder.project, len(x_ND)), self.encoder.inner.outputs
        passes.encode(
            x_ND.numpy(), self.encoder, self.heads, inputs, self.eps, *_extents(keep_SL), scale_N, memory_ND.numpy()
        )
        memory_SLD = torch.zeros_like(x_SLD)
        memory_SLD[keep_SL] = memory_ND
        return memory_SLD

    @torch.no_grad()
    def start(self, memory_SLD: Tensor, keep_SL: Tensor, beams: int = 1) -> Slots:
        """The source's keys and values for all decoder layers, and an empty past."""
        begin_S, length_S = _extents(keep_SL)
        sentences, layers = len(keep_SL), len(self.decoder.project.weight_NPKW)
        memory_ND = memory_SLD[keep_SL].numpy()
        memory_N2SLD = torch.empty(layers, 2, sentences, int(length_S.max(initial=0)), self.width)
        scale_N = row_scales(self.remember, len(memory_ND))
        passes.remember(memory_ND, self.remember, begin_S, length_S, scale_N, memory_N2SLD.flatten(0, 1).numpy())
        return Slots(
            sentences=(torch.arange(sentences),),
            rows=(torch.empty(sentences * beams, 0, dtype=torch.int32),),
            beams=beams,
            memory_N2SLD=memory_N2SLD,
            length_S=torch.from_numpy(length_S),
            cache_N2STPD=torch.empty(layers, 2, sentences, 0, beams, self.width),
        )

    def step(self, state: State, last_R: Tensor) -> tuple[Tensor, Slots]:
        """The logits_RV after the tokens `last_R`, and the state that remembers them."""
        return self._step(state, last_R, _UNSEEN)

    def watch(self, state: State, last_R: Tensor) -> tuple[Tensor, Slots, Tensor]:
        """The same, and how much each hypothesis looks at each source token, as `align.attention_BTS` tells it."""
        assert isinstance(state, Slots)
        looked_RL = torch.zeros(len(last_R), state.memory_N2SLD.size(3))
        return *self._step(state, last_R, looked_RL.numpy()), looked_RL

    @torch.no_grad()
    def _step(self, state: State, last_R: Tensor, looked_RL: Numbers) -> tuple[Tensor, Slots]:
        assert isinstance(state, Slots)
        cache, rows, vocabulary = state.with_room(), len(last_R), len(self.embedding_VD)
        x_RD = np.empty((rows, self.width), np.float32)
        passes.embed(last_R.numpy(), self.embedding_VD, self.scale, self._place(state.step), x_RD)
        scale_R = row_scales(self.decoder.project, rows)
        logits = _buffers.take(rows, vocabulary, torch.float32)
        passes.decode(
            x_RD, self.decoder, self.decoder.inner.outputs, self.eps, state.step, state.beams,
            state.sentences[0].numpy(), state.rows[0].numpy(), state.length_S.numpy(), self._by_head(cache),
            self._by_head(state.memory_N2SLD), scale_R, logits.array_RW.view(self.decoder.predict.start_NPW.dtype),
            logits.array_RW, self.watched, looked_RL,
        )  # fmt: skip
        return logits.tensor_RW, state.stepped(cache)

    def _by_head(self, x: Tensor) -> Numbers:
        """…D as …HE."""
        return x.numpy().reshape(*x.shape[:-1], self.heads, -1)

    def _place(self, step: int) -> Numbers:
        """What is added to the embedding of a token that stands there. Raises DataError past the last position."""
        place_D = self.places.get(step)
        if place_D is None:  # two threads may both find out, and write down the same
            nothing_11D = torch.zeros(1, 1, self.width)
            place_D = self.decoder_side.position.embed(nothing_11D, step).float().numpy().reshape(-1)
            self.places[step] = place_D
        return place_D


def _extents(keep_SL: Tensor) -> tuple[Numbers, Numbers]:
    """Where among all real tokens each sentence begins, and how many it has."""
    length_S = keep_SL.sum(1).numpy()
    return np.cumsum(length_S) - length_S, length_S


def _query(attention: Attention) -> Tensor:
    """The weights of queries that come divided by √E."""
    weight_DD = attention.query.weight.detach().float()
    return weight_DD / math.sqrt(weight_DD.size(0) // attention.heads)


def _own(layers: Sequence[EncoderLayer] | Sequence[DecoderLayer], arithmetic: Arithmetic) -> tuple[Product, Product]:
    """The products of self-attention: queries, keys and values side by side, and the output's."""
    attentions = [layer.attention for layer in layers]
    weights = [torch.cat([_query(part), part.key.weight.float(), part.value.weight.float()]) for part in attentions]
    none = [None] * len(attentions)
    return product(weights, none, arithmetic), product([part.output.weight for part in attentions], none, arithmetic)


def _feed_forward(
    layers: Sequence[EncoderLayer] | Sequence[DecoderLayer], arithmetic: Arithmetic
) -> tuple[Product, Product]:
    parts = [layer.feedforward for layer in layers]
    inner, outer = ([getattr(part, name) for part in parts] for name in ("inner", "outer"))
    return (
        product([part.weight for part in inner], [part.bias for part in inner], arithmetic),
        product([part.weight for part in outer], [part.bias for part in outer], arithmetic),
    )


def _residuals(layer: EncoderLayer | DecoderLayer) -> list[Residual]:
    """Those of a layer's parts, in their order."""
    names = ("attention_residual", "cross_residual", "feedforward_residual")
    return [getattr(layer, name) for name in names if hasattr(layer, name)]


def _joints(side: Side[EncoderLayer] | Side[DecoderLayer]) -> Joints:
    residuals = [residual for layer in side.layers for residual in _residuals(layer)]
    after = [None, *(residual.norm if residual.post else None for residual in residuals)]
    before = [*(None if residual.post else residual.norm for residual in residuals), side.norm]
    return Joints(*_stacked(after), *_stacked(before))


def _stacked(norms: Sequence[nn.Module | None]) -> tuple[Numbers, Numbers]:
    """Weights and biases of LayerNorms, copied, of which one may be missing; M×0 where all are."""
    there = [norm for norm in norms if isinstance(norm, nn.LayerNorm)]
    if not there:
        return np.empty((len(norms), 0), np.float32), np.empty((len(norms), 0), np.float32)
    none = nn.LayerNorm(there[0].normalized_shape)
    filled = [norm if isinstance(norm, nn.LayerNorm) else none for norm in norms]
    weight, bias = (
        torch.stack([getattr(norm, name).detach().float() for norm in filled]).numpy() for name in ("weight", "bias")
    )
    return weight, bias
