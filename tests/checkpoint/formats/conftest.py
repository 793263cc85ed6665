"""Model folders whose every weight matters: biases and LayerNorms drawn too, and distributions with opinions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from nmt.files import read_json, sha256, write_json
from nmt.model.config import TransformerConfig

Make = Callable[..., Path]


def config(**changes: Any) -> TransformerConfig:
    """A small Transformer of unequal depths."""
    sizes = {"width": 16, "feedforward": 24, "encoder_layers": 2, "decoder_layers": 3, "attention": {"heads": 2}}
    return TransformerConfig.model_validate({**sizes, **changes})


@pytest.fixture
def make(save: Callable[..., Path], tmp_path: Path) -> Make:
    """Writes a model folder: ``make(norm="post", activation="gelu")``."""

    def write(seed: int = 1, end: float = 2.0, **changes: Any) -> Path:
        folder = save(tmp_path / "trained", seed=seed, config=config(**changes))
        generator = torch.Generator().manual_seed(seed)
        stored = load_file(folder / "model.safetensors")
        for name, weight in stored.items():
            weight += 0.1 * torch.randn(weight.shape, generator=generator)
            if "embedding" in name or name.startswith("output"):
                weight[3] *= end  # the end mark, so that some translations end
        save_file(stored, folder / "model.safetensors")
        told = {**read_json(folder / "model.json"), "weights_sha256": sha256(folder / "model.safetensors")}
        write_json(folder / "model.json", told)
        return folder

    return write


def lines(count: int = 12, seed: int = 5) -> list[str]:
    """Sentences of unequal lengths, with spaces, special names and characters that the vocabulary never saw."""
    chance = random.Random(seed)
    odd = ["  two  spaces ", "the mark </s> and <unk>", "ß, 你好 and 🙂", "<0x41>"]
    return odd + [" ".join(_words(chance)) for _ in range(count - len(odd))]


def _words(chance: random.Random) -> Iterator[str]:
    for _ in range(chance.randint(1, 6)):
        yield "".join(chance.choices("abcdefgh", k=chance.randint(1, 6)))
