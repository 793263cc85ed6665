"""CTranslate2, a fast engine for processors and GPUs: model.bin, config.json, vocabularies and the subword models.

D width · T positions
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ctranslate2.specs as specs
import numpy as np
from torch import Tensor, nn

from nmt.checkpoint import layout
from nmt.checkpoint.formats import foreign
from nmt.checkpoint.layout import Description
from nmt.files import write_text_whole
from nmt.model.attention.core import Attention
from nmt.model.layers import EPSILON, DecoderLayer, EncoderLayer, FeedForward, Residual
from nmt.model.position.learned import Learned
from nmt.model.position.sinusoidal import codes
from nmt.model.seq2seq import Seq2Seq
from nmt.model.transformer import Side, Transformer

QUANTIZATIONS = ("none", "int8", "float16")
NAME = "CTranslate2"
ACTIVATIONS = {"relu": specs.common_spec.Activation.RELU, "gelu": specs.common_spec.Activation.GELU}


def write(folder: Path, source: Path, description: Description, model: Seq2Seq, quantization: str = "none") -> None:
    """Fill `folder`. Raises ModelError for what CTranslate2 cannot hold."""
    spec = specification(description, foreign.transformer(description, model, NAME))
    spec.register_source_vocabulary(foreign.pieces(source / description.source_vocabulary))
    spec.register_target_vocabulary(foreign.pieces(source / description.target_vocabulary))
    spec.validate()
    spec.optimize(quantization=None if quantization == "none" else quantization)
    spec.save(str(folder))
    foreign.copy({name: source / name for name in description.vocabulary_sha256}, folder)
    write_text_whole(folder / layout.CARD, _card(description))


def specification(description: Description, model: Transformer) -> Any:
    """The model as CTranslate2 describes one; vocabularies are not yet registered."""
    config = description.model
    shared = {
        "num_heads": config.attention.heads,
        "pre_norm": config.norm == "pre",
        "activation": ACTIVATIONS[config.activation],
    }
    if config.position.kind == "rotary":
        shared |= {"rotary_dim": config.attention.head_width(config.width), "rotary_interleave": False}
    encoder = specs.TransformerEncoderSpec(config.encoder_layers, **shared)
    decoder = specs.TransformerDecoderSpec(config.decoder_layers, **shared)
    spec = specs.TransformerSpec(encoder, decoder)
    spec.config.add_source_eos = True
    spec.config.decoder_start_token = spec.config.bos_token
    spec.config.layer_norm_epsilon = EPSILON
    count = foreign.positions(description, model)
    _side(encoder, encoder.embeddings[0], model.encoder, count)
    _side(decoder, decoder.embeddings, model.decoder, count)
    for encoder_spec, encoder_layer in zip(encoder.layer, model.encoder.layers, strict=True):
        _encoder_layer(encoder_spec, encoder_layer)
    for decoder_spec, decoder_layer in zip(decoder.layer, model.decoder.layers, strict=True):
        _decoder_layer(decoder_spec, decoder_layer)
    decoder.projection.weight = _array(model.output_weight_VD)
    return spec


def _side(spec: Any, embeddings: Any, side: Side[Any], count: int) -> None:
    """Embeddings, the table of positions, and the last LayerNorm of a pre-norm stack."""
    embeddings.weight = _array(side.embedding.weight)
    position = side.position
    if isinstance(position, Learned):
        spec.position_encodings.encodings = _array(position.weight)
    elif hasattr(position, "table_TD"):  # its own formula has other frequencies, in another order
        spec.position_encodings.encodings = _array(codes(count, side.embedding.weight.size(1)))
    elif hasattr(spec, "position_encodings"):
        del spec.position_encodings
    if isinstance(side.norm, nn.LayerNorm):
        _norm(spec.layer_norm, side.norm)


def _encoder_layer(spec: Any, layer: EncoderLayer) -> None:
    _attention(spec.self_attention, layer.attention, layer.attention_residual, fused=3)
    _feedforward(spec.ffn, layer.feedforward, layer.feedforward_residual)


def _decoder_layer(spec: Any, layer: DecoderLayer) -> None:
    _attention(spec.self_attention, layer.attention, layer.attention_residual, fused=3)
    _attention(spec.attention, layer.cross_attention, layer.cross_residual, fused=2)
    _feedforward(spec.ffn, layer.feedforward, layer.feedforward_residual)


def _attention(spec: Any, attention: Attention, residual: Residual, fused: int) -> None:
    """Query, key and value matrices, of which the last `fused` stand in one; then the output's."""
    _norm(spec.layer_norm, residual.norm)
    matrices = [_array(linear.weight) for linear in (attention.query, attention.key, attention.value)]
    matrices = [*matrices[: 3 - fused], np.concatenate(matrices[3 - fused :]), _array(attention.output.weight)]
    for linear, matrix in zip(spec.linear, matrices, strict=True):
        linear.weight = matrix


def _feedforward(spec: Any, feedforward: FeedForward, residual: Residual) -> None:
    _norm(spec.layer_norm, residual.norm)
    for linear, ours in ((spec.linear_0, feedforward.inner), (spec.linear_1, feedforward.outer)):
        linear.weight, linear.bias = _array(ours.weight), _array(ours.bias)


def _norm(spec: Any, norm: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().float().cpu().numpy()


def _card(description: Description) -> str:
    settings, form = description.translate, foreign.normalization(description)
    clean = f'unicodedata.normalize("{form}", line)' if form else "line"
    python = f"""
import sys
{"import unicodedata" if form else ""}

import ctranslate2
import sentencepiece

source = sentencepiece.SentencePieceProcessor(model_file="{description.source_vocabulary}")
target = sentencepiece.SentencePieceProcessor(model_file="{description.target_vocabulary}")
translator = ctranslate2.Translator(".", device="cpu", inter_threads=2, intra_threads=1)
lines = [line.rstrip("\\n") for line in sys.stdin]
results = translator.translate_batch(
    [source.encode({clean}, out_type=str) for line in lines],
    beam_size={settings.beam},
    length_penalty={foreign.exponent(description)},
    max_input_length={foreign.longest(description)},
    max_decoding_length={foreign.longest(description)},
    disable_unk=True,
    max_batch_size={settings.batch_tokens},
    batch_type="tokens",
)
for result in results:
    print(target.decode(result.hypotheses[0]))
"""
    use = "From within this folder, with `pip install ctranslate2 sentencepiece`, standard input to standard output:"
    return foreign.card(description, NAME, use, python.replace("\n\n\nimport", "\n\nimport"))
