"""The encoder-decoder Transformer (Vaswani et al. 2017, §3).

B batch · S source · T target · D width · V vocabulary · R rows while stepping · 1 broadcast
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar, cast

import torch
from torch import Tensor, nn

from nmt.model import initial
from nmt.model.attention.core import Attention, hide, past
from nmt.model.dropout import Dropout
from nmt.model.embedding import Embedding, Output
from nmt.model.layer_drop import DecoderLayerLeftOut, EncoderLayerLeftOut
from nmt.model.layers import DecoderLayer, EncoderLayer, FeedForward, layer_norm
from nmt.model.packing import Packing
from nmt.model.position.core import Position
from nmt.model.seq2seq import Seq2Seq, State
from nmt.model.ways import Way

if TYPE_CHECKING:
    from nmt.model.config import TransformerConfig


L = TypeVar("L", EncoderLayer, DecoderLayer)

ALIGNED = 8  # numbers; each layer's kernel would otherwise make itself a copy of a mask that is aligned


class Side(nn.Module, Generic[L]):
    """Layers and what feeds them: embedding, position, dropout on their sum; pre-norm has a last LayerNorm."""

    def __init__(
        self,
        embedding: Embedding,
        position: Position,
        layers: Sequence[L],
        norm: nn.LayerNorm | None,
        dropout: float,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.position = position
        self.dropout = Dropout(dropout)
        self.layers: Sequence[L] = cast(Sequence[L], nn.ModuleList(layers))
        self.norm = norm or nn.Identity()

    def embed(self, ids_BT: Tensor, start: int = 0) -> Tensor:
        """What the first layer reads of tokens that stand at `start` and after."""
        x_BTD = self.position.embed(self.embedding(ids_BT), start)
        kind = x_BTD.device.type
        if torch.is_autocast_enabled(kind):
            x_BTD = x_BTD.to(torch.get_autocast_dtype(kind))
        return self.dropout(x_BTD)


class Transformer(Seq2Seq):
    """Encoder, decoder, and the output matrix, which may be the decoder's embedding."""

    def __init__(self, encoder: Side[EncoderLayer], decoder: Side[DecoderLayer], output: Embedding | Output) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.output = output

    @classmethod
    def from_config(
        cls, config: TransformerConfig, source_size: int, target_size: int, pad: int, *, blank: bool = False
    ) -> Transformer:
        """The model that `config` describes, its weights drawn with seed 0; any weights where it is to be `blank`."""
        model = _build(config, source_size, target_size, pad)
        if not blank:
            model.initialize(torch.Generator().manual_seed(0))
        return model

    def initialize(self, generator: torch.Generator) -> None:
        """Draw all weights anew, by the rules of initial.py."""
        initial.initialize(self, generator)

    @property
    def output_weight_VD(self) -> nn.Parameter:
        """The output matrix, one row a target token."""
        return self.output.weight

    def encode(self, src_BS: Tensor, keep_BS: Tensor) -> Tensor:
        """The memory_BSD of sources of which `keep_BS` tells the real tokens."""
        packing, x_BSD, keep_BS = self.packed(keep_BS, self.encoder.embed(src_BS))
        bias_B11S = self.hidden(keep_BS, x_BSD.dtype)
        for layer in self.encoder.layers:
            x_BSD = layer(x_BSD, bias_B11S, packing)
        x_BSD = self.encoder.norm(x_BSD)
        return x_BSD if packing is None else packing.pad(x_BSD)

    def decode_states(self, memory: Tensor, keep_BS: Tensor, tgt_BT: Tensor) -> Tensor:
        """The last states x_BTD of all prefixes. Padding after a target needs no mask: it lies in the future."""
        real_BT = tgt_BT != self.decoder.embedding.pad
        target, x_BTD, real_BT = self.packed(real_BT, self.decoder.embed(tgt_BT))
        source, memory, keep_BS = self.packed(keep_BS, memory)
        bias_11TT, bias_B11S = None, self.hidden(keep_BS, x_BTD.dtype)
        if self.way(real_BT.device) is not Way.FUSED:
            bias_11TT = hide(past(real_BT.size(1), real_BT.device), x_BTD.dtype)
        for layer in self.decoder.layers:
            x_BTD = layer(x_BTD, memory, bias_11TT, bias_B11S, target, source)
        x_BTD = self.decoder.norm(x_BTD)
        return x_BTD if target is None else target.pad(x_BTD)

    def packed(self, keep_BT: Tensor, x_BTD: Tensor) -> tuple[Packing | None, Tensor, Tensor]:
        """What packs `x_BTD`, the packed tokens, and where attention sees real ones; all as it is the other ways."""
        if self.way(keep_BT.device) is not Way.PACKED:
            return None, x_BTD, keep_BT
        packing = Packing(keep_BT)
        return packing, packing.pack(x_BTD), packing.keep_BL

    def hidden(self, keep_BS: Tensor, dtype: torch.dtype) -> Tensor:
        """What hides the source's padding. For fused kernels its rows begin at multiples of eight numbers.

        They are always longer than what is seen of them, or programs would be compiled twice: for rows with gaps
        between them, and for rows without.
        """
        if self.way(keep_BS.device) is not Way.FUSED:
            return hide(keep_BS[:, None, None], dtype)
        length = keep_BS.size(1)
        return hide(nn.functional.pad(keep_BS, (0, ALIGNED - length % ALIGNED))[:, None, None], dtype)[..., :length]

    def start(self, memory: Tensor, keep_BS: Tensor, beams: int = 1) -> State:
        """The source's keys and values for every decoder layer, and an empty past."""
        sentences = [hide(keep_BS[:, None, None], memory.dtype)]
        for layer in self.decoder.layers:
            sentences.extend(layer.cross_attention.remember(memory))
        return State(sentences=tuple(sentences), rows=(), beams=beams, step=0)

    def step(self, state: State, last_R: Tensor) -> tuple[Tensor, State]:
        """The logits_RV after the tokens `last_R`, and the state that remembers them."""
        bias_B11S, *memory = state.sentences
        x_R1D = self.decoder.embed(last_R[:, None], state.step)
        rows: list[Tensor] = []
        for i, layer in enumerate(self.decoder.layers):
            here = slice(2 * i, 2 * i + 2)  # a layer's keys and values
            x_R1D, past = layer.step(x_R1D, state.rows[here], memory[here], bias_B11S, state.step)
            rows.extend(past)
        logits_RV = self.project(self.decoder.norm(x_R1D).squeeze(1))
        return logits_RV, State(state.sentences, tuple(rows), state.beams, state.step + 1)


def _build(config: TransformerConfig, source_size: int, target_size: int, pad: int) -> Transformer:
    width, dropout, norm = config.width, config.dropout, config.norm
    head_width = config.attention.head_width(width)
    source_position = config.position.build(width, head_width)
    target_position = config.position.build(width, head_width)

    def attention(position: Position) -> Attention:
        return config.attention.build(width, position, config.attention_dropout)

    def feedforward() -> FeedForward:
        return FeedForward(width, config.feedforward, config.activation, config.activation_dropout)

    drop = config.layer_drop
    encoder_layer: Callable[..., EncoderLayer] = partial(EncoderLayerLeftOut, drop) if drop else EncoderLayer
    decoder_layer: Callable[..., DecoderLayer] = partial(DecoderLayerLeftOut, drop) if drop else DecoderLayer
    encoder_layers = [
        encoder_layer(width, attention(source_position), feedforward(), norm, dropout)
        for _ in range(config.encoder_layers)
    ]
    decoder_layers = [
        decoder_layer(width, attention(target_position), attention(Position()), feedforward(), norm, dropout)
        for _ in range(config.decoder_layers)
    ]
    target = Embedding(target_size, width, pad)
    source = target if config.tie_embeddings == "all" else Embedding(source_size, width, pad)
    output = Output(target_size, width) if config.tie_embeddings == "none" else target
    return Transformer(
        Side(source, source_position, encoder_layers, layer_norm(width) if norm == "pre" else None, dropout),
        Side(target, target_position, decoder_layers, layer_norm(width) if norm == "pre" else None, dropout),
        output,
    )
