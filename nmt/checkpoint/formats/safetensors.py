"""Our own model folder: safetensors and JSON, with its card, and without what only training needs."""

from __future__ import annotations

from pathlib import Path

from nmt.checkpoint.card import write_card
from nmt.checkpoint.layout import Description
from nmt.checkpoint.save import write_model
from nmt.model.seq2seq import Seq2Seq

QUANTIZATIONS = ("none",)


def write(folder: Path, source: Path, description: Description, model: Seq2Seq, quantization: str = "none") -> None:
    """Fill `folder` with a complete model folder. Raises OutputError."""
    write_model(folder, model, description, {name: source / name for name in description.vocabulary_sha256})
    write_card(folder)
