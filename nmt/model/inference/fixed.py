"""The Transformer's arithmetic over static memory: the same operations on the same shapes at every step.

S slots for sentences · Q queries: tokens, or hypotheses side by side · P hypotheses · R rows: slots × hypotheses
L places of the source · K keys · D width · N layers · 2 keys and values · H heads · E width of a head · V vocabulary
T places · 1 broadcast
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import linear, scaled_dot_product_attention

from nmt.model.attention.core import Attention, hide
from nmt.model.inference.frames import Past, Rows, Source
from nmt.model.inference.norms import Norm, ResidualSum
from nmt.model.inference.transformer import usual
from nmt.model.layers import DecoderLayer, EncoderLayer, FeedForward, Residual
from nmt.model.position.core import Position
from nmt.model.position.learned import Learned
from nmt.model.position.rotary import Rotary, turns
from nmt.model.position.sinusoidal import Sinusoidal
from nmt.model.transformer import Side, Transformer

POSITIONS = (Position, Sinusoidal, Learned, Rotary)
_KERNELS = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]  # both take any bias
_CHOOSING = threading.RLock()  # the choice is one of all threads


class FixedTransformer:
    """What a Transformer computes, in one type from beginning to end but for sums, norms and softmax inside.

    The arithmetic asks for no value of a tensor, so that a GPU can be told a step once and repeat it.
    """

    def __init__(self, model: Transformer, dtype: torch.dtype) -> None:
        self.dtype, self.device = dtype, model.output_weight_VD.device
        self.encoder_side, self.decoder_side = _Embedding(model.encoder, dtype), _Embedding(model.decoder, dtype)
        self.encoder = [_EncoderLayer(layer, dtype) for layer in model.encoder.layers]
        self.decoder = [_DecoderLayer(layer, dtype) for layer in model.decoder.layers]
        self.encoder_norm, self.decoder_norm = Norm(model.encoder.norm, dtype), Norm(model.decoder.norm, dtype)
        crosses = [layer.cross_attention for layer in model.decoder.layers]
        self.heads, self.layers = crosses[0].heads, len(crosses)
        self.head_width = crosses[0].key.weight.size(0) // self.heads
        self.remember = _Linear([weight for c in crosses for weight in (c.key.weight, c.value.weight)], None, dtype)
        self.output_VD = _copied(model.output_weight_VD, dtype)
        self.precise = _makes_float32(self.output_VD)
        self.logits_dtype = torch.float32 if self.precise else dtype

    @staticmethod
    def fits(model: object) -> bool:
        """Whether it can be: a Transformer whose attention and positions are of kinds known here."""
        return usual(model) and all(
            type(part.position) in POSITIONS for part in model.modules() if isinstance(part, (Attention, Side))
        )

    def encode(self, src_SL: Tensor, keep_SL: Tensor) -> Tensor:
        """The memory_SLD of sources of which `keep_SL` tells the real tokens."""
        length = src_SL.size(1)
        bias_S11L = hide(keep_SL[:, None, None], self.dtype)
        x_SLD = self.encoder_side(src_SL, self.encoder_side.codes(length)[:length])
        turn = self.encoder_side.turns(length)
        with _kernels(self.device):
            for layer in self.encoder:
                x_SLD = layer(x_SLD, bias_S11L, turn)
        return self.encoder_norm(x_SLD)

    def remembered(self, memory_SLD: Tensor) -> Tensor:
        """Keys and values of the source for all decoder layers, N2SHLE."""
        slots, places, _ = memory_SLD.shape
        kv = self.remember(memory_SLD).view(slots, places, self.layers, 2, self.heads, self.head_width)
        return kv.permute(2, 3, 0, 4, 1, 5)

    def step(self, rows: Rows, source: Source, past: Past, codes_TD: Tensor, turns_2TE: Tensor | None) -> None:
        """Read one more token of every hypothesis, write its keys and values, and the logits of the next one.

        `codes_TD` and `turns_2TE` are positions, of at least as many places as the past has steps.
        """
        past.go_on(rows)
        hidden_S1PU = past.hidden_S1PU(self.dtype)
        spot_P = rows.place_1 * past.place_P.numel() + past.place_P
        turn = None if turns_2TE is None else turns_2TE.index_select(1, rows.place_1)
        x_SPD = self.decoder_side(rows.token_SP, codes_TD.index_select(0, rows.place_1))
        caches, memories = past.cache_N2SHUE.unbind(), source.memory_N2SHLE.unbind()
        with _kernels(self.device):
            for layer, cache, memory in zip(self.decoder, caches, memories, strict=True):
                x_SPD = layer(x_SPD, turn, spot_P, cache, hidden_S1PU, memory, source.bias_S11L)
        self._project(self.decoder_norm(x_SPD).flatten(0, 1), rows.logits_RV)

    def _project(self, x_RD: Tensor, logits_RV: Tensor) -> None:
        """The logits, rounded to fewer bits only where torch cannot do without."""
        if self.precise and self.dtype != torch.float32:
            torch.mm(x_RD, self.output_VD.T, out_dtype=torch.float32, out=logits_RV)
        else:
            torch.mm(x_RD, self.output_VD.T, out=logits_RV)


@contextmanager
def _kernels(device: torch.device) -> Iterator[None]:
    """Attention on a GPU by kernels whose sums depend on nothing but a query's own keys, as long as shapes stay."""
    if device.type != "cuda":
        yield
        return
    with _CHOOSING, sdpa_kernel(_KERNELS):
        yield


def _makes_float32(weight_VD: Tensor) -> bool:
    """Whether products of these weights come in float32: torch 2.8 began to offer it, on GPUs only."""
    if weight_VD.dtype == torch.float32:
        return True
    weight_DV = weight_VD[:8].T
    out = torch.empty(8, weight_DV.size(1), device=weight_VD.device)
    try:
        torch.mm(torch.zeros_like(weight_VD[:8]), weight_DV, out_dtype=torch.float32, out=out)
    except (RuntimeError, TypeError, NotImplementedError):
        return False
    return True


def _copied(weight: Tensor, dtype: torch.dtype) -> Tensor:
    return weight.detach().to(dtype, copy=True)


class _Linear:
    """x Wᵀ + b, where W may be several one above the other."""

    def __init__(self, weights_OI: list[Tensor], bias_O: Tensor | None, dtype: torch.dtype) -> None:
        self.weight_OI = _copied(torch.cat(weights_OI), dtype)
        self.bias_O = None if bias_O is None else _copied(bias_O, dtype)

    def __call__(self, x: Tensor) -> Tensor:
        return linear(x, self.weight_OI, self.bias_O)


class _Embedding:
    """Vectors of tokens and of their positions."""

    def __init__(self, side: Side[EncoderLayer] | Side[DecoderLayer], dtype: torch.dtype) -> None:
        self.position, self.dtype = side.position, dtype
        self.weight_VD = (side.embedding.weight.detach() * side.embedding.scale).to(dtype)

    def __call__(self, ids: Tensor, codes: Tensor) -> Tensor:
        return self.weight_VD[ids] + codes

    def codes(self, count: int) -> Tensor:
        """What is added at the first `count` places, TD; zero where the model knows no more of them."""
        places = min(count, self.position.weight.size(0)) if isinstance(self.position, Learned) else count
        zero_TD = torch.zeros(count, self.weight_VD.size(1), device=self.weight_VD.device)
        zero_TD[:places] = self.position.embed(zero_TD[None, :places])[0]
        return zero_TD.to(self.dtype)

    def turns(self, count: int) -> Tensor | None:
        """Cosines and sines by which queries and keys turn at the first `count` places, 2TE; None where none does."""
        if not isinstance(self.position, Rotary):
            return None
        return turns(count, self.position.head_width).to(self.weight_VD)


class _FeedForward:
    def __init__(self, part: FeedForward, residual: Residual, dtype: torch.dtype) -> None:
        self.inner = _Linear([part.inner.weight], part.inner.bias, dtype)
        self.outer = _Linear([part.outer.weight], part.outer.bias, dtype)
        self.activation = torch.relu_ if part.activation is torch.relu else part.activation
        self.residual = ResidualSum(residual, dtype)

    def __call__(self, x: Tensor) -> Tensor:
        return self.residual.after(x, self.outer(self.activation(self.inner(self.residual.before(x)))))


class _Attention:
    """The linear layers of one attention, and the residual sum around it."""

    def __init__(self, attention: Attention, residual: Residual, dtype: torch.dtype, own_keys: bool) -> None:
        """With `own_keys`, keys and values are made of what the queries are made of, in the same product."""
        parts = [attention.query.weight, *([attention.key.weight, attention.value.weight] if own_keys else [])]
        self.parts, self.heads = len(parts), attention.heads
        self.project = _Linear(parts, None, dtype)
        self.output = _Linear([attention.output.weight], None, dtype)
        self.residual = ResidualSum(residual, dtype)

    def split(self, x_SQD: Tensor) -> Tensor:
        """Queries, and keys and values if they are its own, heads apart: 1SHQE or 3SHQE."""
        slots, queries, _ = x_SQD.shape
        y = self.project(self.residual.before(x_SQD)).view(slots, queries, self.parts, self.heads, -1)
        return y.permute(2, 0, 3, 1, 4)

    def mixed(self, x_SQD: Tensor, q_SHQE: Tensor, k_SHKE: Tensor, v_SHKE: Tensor, bias_S1QK: Tensor) -> Tensor:
        """The layer's sum with what the queries take of the values."""
        y_SHQE = scaled_dot_product_attention(q_SHQE, k_SHKE, v_SHKE, bias_S1QK)
        return self.residual.after(x_SQD, self.output(y_SHQE.transpose(1, 2).flatten(2)))


def _turned(qk_2SHQE: Tensor, turn_2QE: Tensor) -> Tensor:
    cos_QE, sin_QE = turn_2QE
    left, right = qk_2SHQE.chunk(2, dim=-1)
    return qk_2SHQE * cos_QE + torch.cat([right, left], dim=-1) * sin_QE


class _EncoderLayer:
    def __init__(self, layer: EncoderLayer, dtype: torch.dtype) -> None:
        self.attention = _Attention(layer.attention, layer.attention_residual, dtype, own_keys=True)
        self.feedforward = _FeedForward(layer.feedforward, layer.feedforward_residual, dtype)

    def __call__(self, x_SLD: Tensor, bias_S11L: Tensor, turns_2LE: Tensor | None) -> Tensor:
        q_SHLE, k_SHLE, v_SHLE = self.attention.split(x_SLD)
        if turns_2LE is not None:
            q_SHLE, k_SHLE = _turned(q_SHLE, turns_2LE), _turned(k_SHLE, turns_2LE)
        return self.feedforward(self.attention.mixed(x_SLD, q_SHLE, k_SHLE, v_SHLE, bias_S11L))


class _DecoderLayer:
    def __init__(self, layer: DecoderLayer, dtype: torch.dtype) -> None:
        self.attention = _Attention(layer.attention, layer.attention_residual, dtype, own_keys=True)
        self.cross = _Attention(layer.cross_attention, layer.cross_residual, dtype, own_keys=False)
        self.feedforward = _FeedForward(layer.feedforward, layer.feedforward_residual, dtype)

    def __call__(
        self,
        x_SPD: Tensor,
        turn_21E: Tensor | None,
        spot_P: Tensor,
        cache_2SHUE: Tensor,
        hidden_S1PU: Tensor,
        memory_2SHLE: Tensor,
        bias_S11L: Tensor,
    ) -> Tensor:
        """The states of one more token of every hypothesis, whose keys and values are written at `spot_P`."""
        qkv_3SHPE = self.attention.split(x_SPD)
        q_SHPE, kv_2SHPE = qkv_3SHPE[0], qkv_3SHPE[1:]
        if turn_21E is not None:
            q_SHPE, k_SHPE = _turned(qkv_3SHPE[:2], turn_21E)
            kv_2SHPE = torch.stack([k_SHPE, qkv_3SHPE[2]])
        cache_2SHUE.index_copy_(3, spot_P, kv_2SHPE)
        x_SPD = self.attention.mixed(x_SPD, q_SHPE, cache_2SHUE[0], cache_2SHUE[1], hidden_S1PU)
        (q_SHPE,) = self.cross.split(x_SPD)
        x_SPD = self.cross.mixed(x_SPD, q_SHPE, memory_2SHLE[0], memory_2SHLE[1], bias_S11L)
        return self.feedforward(x_SPD)
