"""Toy configs: every combination of the choices a config offers, so that a new kind is tested at birth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, get_args, get_origin

import torch
from torch import Tensor

from nmt.model.config import AttentionConfig, ModelConfig, PositionConfig
from nmt.model.seq2seq import Seq2Seq
from nmt.schema import Config

PAD, BOS, EOS = 0, 2, 3
SOURCE_SIZE, TARGET_SIZE = 23, 23
SIZES = {
    "width": 16,
    "feedforward": 24,
    "heads": 2,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "length": 32,
    "layers": 2,
}


def members(annotation: Any) -> list[type[Config]]:
    """The config classes of a union, or of what stands in the place of one."""
    if isinstance(annotation, type) and issubclass(annotation, Config):
        return [annotation]
    return [member for argument in get_args(annotation) for member in members(argument)]


def choices(annotation: Any) -> list[Any]:
    """The values worth trying for a field: each literal, a toy of each config; nothing for numbers."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [toy for member in members(annotation) for toy in toys(member)]


def toys(config: type[Config]) -> Iterator[Config]:
    """Every combination of the choices of `config`, at toy size."""
    fields = config.model_fields
    open_fields = {name: options for name, field in fields.items() if (options := choices(field.annotation))}
    sizes = {name: size for name, size in SIZES.items() if name in fields}
    for values in product(*open_fields.values()):
        yield config(**sizes, **dict(zip(open_fields, values, strict=True)))


def name(config: Config) -> str:
    """A short test id."""
    values = [value for value in dict(config).values() if isinstance(value, str | Config)]
    return "-".join(name(value) if isinstance(value, Config) else value for value in values)


MODELS = [toy for member in members(ModelConfig) for toy in toys(member)]
ATTENTIONS = [toy for member in members(AttentionConfig) for toy in toys(member)]
POSITIONS = [toy for member in members(PositionConfig) for toy in toys(member)]


def build(config: Any, seed: int = 1) -> Seq2Seq:
    """The toy in float64 and without dropout; every weight is drawn large enough for a leak to show."""
    model: Seq2Seq = config.build(SOURCE_SIZE, TARGET_SIZE, PAD)
    model.initialize(torch.Generator().manual_seed(seed))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():  # biases and norms too, which start as zeros and ones
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.2)
    return model.double().eval()


@dataclass(frozen=True)
class Pairs:
    """Three sentence pairs of unequal lengths, padded."""

    src_BS: Tensor
    keep_BS: Tensor
    tgt_BT: Tensor


def pairs(extra_source: int = 0, extra_target: int = 0) -> Pairs:
    """The pairs, with as many more columns of padding as asked for."""
    sources = [[7, 8, 9, 10, 11, EOS], [12, EOS], [13, 14, 15, EOS]]
    targets = [[BOS, 5, 6, 7], [BOS, 8, 9, 10, 11, 12], [BOS, 13]]
    src_BS, tgt_BT = padded(sources, 6 + extra_source), padded(targets, 6 + extra_target)
    return Pairs(src_BS, src_BS != PAD, tgt_BT)


def padded(rows: list[list[int]], width: int) -> Tensor:
    """Rows of ids, filled up at the right."""
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
