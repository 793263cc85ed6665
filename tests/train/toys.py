"""A toy model and toy pairs, small enough to train in a moment."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nmt.batches.buckets import BatchOrder
from nmt.checkpoint.layout import Description
from nmt.corpus.config import LanguagesConfig
from nmt.model.config import DotConfig, LearnedConfig, TransformerConfig
from nmt.model.seq2seq import Seq2Seq
from nmt.train.data import Pairs
from nmt.train.muon import muon
from nmt.train.optimizer import adam
from nmt.train.schedule import paper
from nmt.train.store import Store

SIZE, PAD, BOS, EOS = 13, 0, 2, 3
CONFIG = TransformerConfig(
    width=8, feedforward=16, encoder_layers=1, decoder_layers=1, dropout=0.1, attention=DotConfig(heads=2)
)
SCHEDULE = paper(8, 8)


def model(seed: int = 1, **changes: object) -> Seq2Seq:
    built = CONFIG.model_copy(update=changes).build(SIZE, SIZE, PAD)
    built.initialize(torch.Generator().manual_seed(seed))
    return built


def learned(length: int | None) -> dict[str, Any]:
    """What changes the model into one of so many learned positions, which several layers hold; nothing without."""
    return {"position": LearnedConfig(length=length), "encoder_layers": 2, "decoder_layers": 2} if length else {}


def optimizer(of: Seq2Seq) -> torch.optim.Optimizer:
    return adam(of, betas=(0.9, 0.98), epsilon=1e-9)


def turning(of: Seq2Seq) -> torch.optim.Optimizer:
    return muon(of, momentum=0.9, iterations=5, precision="float32", betas=(0.9, 0.98), epsilon=1e-9, weight_decay=0.1)


def pairs(count: int = 24, seed: int = 1, **changes: int) -> Pairs:
    """Random sources; their targets are the same, reversed."""
    random = np.random.default_rng(seed)
    source = [random.integers(4, SIZE, random.integers(1, 7)) for _ in range(count)]
    target = [ids[::-1] for ids in source]
    limits = {"batch_tokens": 24, "accumulate": 1, "max_source_tokens": 20, "max_target_tokens": 20} | changes
    lengths = np.array([len(ids) for ids in source], dtype=np.int32)
    return Pairs(source, target, BatchOrder(lengths, lengths, seed=5, **limits), bos=BOS, eos=EOS, pad=PAD)


def description(config: TransformerConfig = CONFIG) -> Description:
    return Description(
        languages=LanguagesConfig(source="xx", target="yy"),
        model=config,
        shared_vocabulary=True,
        source_size=SIZE,
        target_size=SIZE,
        vocabulary_sha256={},
        max_source_tokens=20,
    )


def store(folder: Path, keep: int = 5, every: int = 1) -> Store:
    return Store(folder, description(), {}, every=every, keep=keep)


def steps_of(folder: Path) -> list[int]:
    return sorted(int(path.name.removeprefix("step-")) for path in folder.glob("step-*") if path.is_dir())


def last(events: Iterable[object]) -> object:
    return list(events)[-1]
