"""Hugging Face transformers: MarianMTModel for post-norm models, PegasusForConditionalGeneration for pre-norm ones.

Both compute sinusoidal positions by our frequencies, but with all sines before all cosines, and put their own table
in place of a stored one. So the model's width is reordered in every matrix instead: even dimensions first, odd ones
after them. No sum, product or LayerNorm is changed by that. They have biases in attention, which are zero, and
LayerNorm with ε = 1e-5 where ours is 1e-6, which moves logits by about 1e-5 of their size.

V vocabulary · D width · T positions
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nmt.checkpoint import layout
from nmt.checkpoint.formats import foreign
from nmt.checkpoint.layout import Description
from nmt.checkpoint.tensors import write_tensors
from nmt.files import write_json, write_text_whole
from nmt.model.attention.core import Attention
from nmt.model.layers import DecoderLayer, EncoderLayer
from nmt.model.position.sinusoidal import codes
from nmt.model.seq2seq import Seq2Seq
from nmt.model.transformer import Side, Transformer
from nmt.subwords.vocabulary import BOS, EOS, PAD, UNK

QUANTIZATIONS = ("none",)
NAME = "transformers"
CLASSES = {"post": ("marian", "MarianMTModel"), "pre": ("pegasus", "PegasusForConditionalGeneration")}
Weights = Iterator[tuple[str, Tensor]]


def write(folder: Path, source: Path, description: Description, model: Seq2Seq, quantization: str = "none") -> None:
    """Fill `folder`. Raises ModelError for what transformers' classes cannot hold."""
    plain = foreign.transformer(description, model, NAME)
    check(description)
    write_tensors(folder / layout.WEIGHTS, dict(tensors(description, plain)))
    write_json(folder / "config.json", configuration(description, plain))
    write_json(folder / "generation_config.json", generation(description))
    write_json(folder / "tokenizer_config.json", tokenizer(description))
    source_side, target_side = source / description.source_vocabulary, source / description.target_vocabulary
    truecase = description.vocabulary_sha256.keys() - {source_side.name, target_side.name}
    foreign.copy({name: source / name for name in truecase}, folder)
    foreign.copy({"source.spm": source_side, "target.spm": target_side}, folder)
    write_json(folder / "vocab.json", _numbered(source_side))
    if not description.shared_vocabulary:
        write_json(folder / "target_vocab.json", _numbered(target_side))
    write_text_whole(folder / layout.CARD, _card(description))


def _numbered(vocabulary: Path) -> dict[str, int]:
    return {piece: i for i, piece in enumerate(foreign.pieces(vocabulary))}


def check(description: Description) -> None:
    """Raises ModelError for a model that neither class can hold."""
    config = description.model
    if config.position.kind != "sinusoidal":
        raise foreign.lacks(NAME, f"{config.position.kind} positions in such a model")
    if config.norm == "pre" and config.tie_embeddings != "all":
        raise foreign.lacks(NAME, "a pre-norm model whose source, target and output matrices are not one")


def tensors(description: Description, model: Transformer) -> Weights:
    """Name and value of every weight as transformers stores them."""
    width = description.model.width
    order_D = torch.cat([torch.arange(0, width, 2), torch.arange(1, width, 2)])
    table_TD = codes(foreign.positions(description, model), width)[:, order_D]
    yield from _embeddings(description, model, order_D)
    yield "final_logits_bias", torch.zeros(1, description.target_size)
    sides: list[tuple[str, Side[Any]]] = [("encoder", model.encoder), ("decoder", model.decoder)]
    for name, side in sides:
        yield f"model.{name}.embed_positions.weight", table_TD.clone()
        for i, layer in enumerate(side.layers):
            yield from _layer(f"model.{name}.layers.{i}", layer, order_D)
        if isinstance(side.norm, nn.LayerNorm):
            yield from _norm(f"model.{name}.layer_norm", side.norm, order_D)


def _embeddings(description: Description, model: Transformer, order_D: Tensor) -> Weights:
    if description.model.tie_embeddings == "all":
        yield "model.shared.weight", model.output_weight_VD[:, order_D]
        return
    yield "model.encoder.embed_tokens.weight", model.encoder.embedding.weight[:, order_D]
    yield "model.decoder.embed_tokens.weight", model.decoder.embedding.weight[:, order_D]
    if description.model.tie_embeddings == "none":
        yield "lm_head.weight", model.output_weight_VD[:, order_D]


def _layer(name: str, layer: EncoderLayer | DecoderLayer, order_D: Tensor) -> Weights:
    yield from _attention(f"{name}.self_attn", layer.attention, order_D)
    yield from _norm(f"{name}.self_attn_layer_norm", layer.attention_residual.norm, order_D)
    if isinstance(layer, DecoderLayer):
        yield from _attention(f"{name}.encoder_attn", layer.cross_attention, order_D)
        yield from _norm(f"{name}.encoder_attn_layer_norm", layer.cross_residual.norm, order_D)
    inner, outer = layer.feedforward.inner, layer.feedforward.outer
    yield f"{name}.fc1.weight", inner.weight[:, order_D]
    yield f"{name}.fc1.bias", inner.bias
    yield f"{name}.fc2.weight", outer.weight[order_D]
    yield f"{name}.fc2.bias", outer.bias[order_D]
    yield from _norm(f"{name}.final_layer_norm", layer.feedforward_residual.norm, order_D)


def _attention(name: str, attention: Attention, order_D: Tensor) -> Weights:
    for part, linear in (("q_proj", attention.query), ("k_proj", attention.key), ("v_proj", attention.value)):
        yield f"{name}.{part}.weight", linear.weight[:, order_D]
        yield f"{name}.{part}.bias", torch.zeros(linear.out_features)
    yield f"{name}.out_proj.weight", attention.output.weight[order_D]
    yield f"{name}.out_proj.bias", torch.zeros(attention.output.out_features)


def _norm(name: str, norm: nn.LayerNorm, order_D: Tensor) -> Weights:
    yield f"{name}.weight", norm.weight[order_D]
    yield f"{name}.bias", norm.bias[order_D]


def configuration(description: Description, model: Transformer) -> dict[str, Any]:
    """config.json."""
    config = description.model
    kind, architecture = CLASSES[config.norm]
    own = {}
    if kind == "marian":
        own = {
            "decoder_vocab_size": description.target_size,
            "share_encoder_decoder_embeddings": config.tie_embeddings == "all",
        }
    return {
        "architectures": [architecture],
        "model_type": kind,
        "is_encoder_decoder": True,
        "vocab_size": description.source_size,
        **own,
        "d_model": config.width,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "encoder_attention_heads": config.attention.heads,
        "decoder_attention_heads": config.attention.heads,
        "encoder_ffn_dim": config.feedforward,
        "decoder_ffn_dim": config.feedforward,
        "activation_function": config.activation,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.activation_dropout,
        "max_position_embeddings": foreign.positions(description, model),
        "scale_embedding": True,
        "tie_word_embeddings": config.tie_embeddings != "none",
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": None,
        "torch_dtype": "float32",
    }


def generation(description: Description) -> dict[str, Any]:
    """generation_config.json: the model's own search settings, as far as they exist there."""
    return {
        "num_beams": description.translate.beam,
        "length_penalty": foreign.exponent(description),
        "max_new_tokens": foreign.longest(description),
        "suppress_tokens": [PAD, UNK, BOS],
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
    }


def tokenizer(description: Description) -> dict[str, Any]:
    """tokenizer_config.json. Names of special tokens in user text are text, as they are here."""
    return {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": description.languages.source,
        "target_lang": description.languages.target,
        "separate_vocabs": not description.shared_vocabulary,
        "unk_token": "<unk>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "split_special_tokens": True,
        "clean_up_tokenization_spaces": False,
        "model_max_length": description.translate.max_source_tokens or description.max_source_tokens,
    }


def _card(description: Description) -> str:
    architecture, form = CLASSES[description.model.norm][1], foreign.normalization(description)
    clean = f'unicodedata.normalize("{form}", line.rstrip("\\n"))' if form else 'line.rstrip("\\n")'
    python = f"""
import sys
{"import unicodedata" if form else ""}

from transformers import {", ".join(sorted([architecture, "MarianTokenizer"]))}

tokenizer = MarianTokenizer.from_pretrained(".")
model = {architecture}.from_pretrained(".")
lines = [{clean} for line in sys.stdin]
batch = tokenizer(lines, return_tensors="pt", padding=True, truncation=True)
for ids in model.generate(**batch):
    print(tokenizer.decode(ids[1:], skip_special_tokens=True))
"""
    use = "From within this folder, with `pip install transformers sentencepiece`, standard input to standard output:"
    return foreign.card(description, f"transformers ({architecture})", use, python.replace("\n\n\nfrom", "\n\nfrom"))
