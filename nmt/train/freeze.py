"""Weights that training leaves as they are, chosen by the name of a part of the model or by patterns of their names."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from torch import nn

from nmt.errors import TrainingError

PARTS = {  # patterns of the names that `nmt checkpoint show` and the weights file tell
    "encoder": ("encoder.layers.*", "encoder.norm.*"),
    "decoder": ("decoder.layers.*", "decoder.norm.*"),
    "embeddings": ("*.embedding.*",),
    "positions": ("*.position.*",),
    "output": ("output.*",),
    "attention": ("*.attention.*", "*.attention_residual.*"),
    "cross_attention": ("*.cross_attention.*", "*.cross_residual.*"),
    "feedforward": ("*.feedforward.*", "*.feedforward_residual.*"),
    "norms": ("*norm.weight", "*norm.bias"),
    "biases": ("*.bias",),
}
"""What a name stands for. A matrix that two parts share belongs to both."""


def freeze(model: nn.Module, patterns: Sequence[str]) -> list[str]:
    """Freeze what the parts or patterns name, before anything is built for training; the first names of all of it.

    A frozen weight gets no gradient, and so no step, decay or moment. Raises TrainingError for a pattern that matches
    nothing, and where nothing would be left to train.
    """
    named = list(model.named_parameters(remove_duplicate=False))
    named = [(name, p) for name, p in named if ".layers." not in name or ".position." not in name]  # a side's own
    for pattern in patterns:
        found = [p for name, p in named if any(fnmatchcase(name, each) for each in PARTS.get(pattern, (pattern,)))]
        if not found:
            raise _nothing(pattern, [name for name, _ in named])
        for parameter in found:
            parameter.requires_grad_(False)
    if not any(p.requires_grad for p in model.parameters()):
        raise TrainingError(
            f"[train] freeze = {list(patterns)}: freezes every weight, and nothing is left to train", "name fewer parts"
        )
    return [name for name, p in model.named_parameters() if not p.requires_grad]


def _nothing(pattern: str, names: Sequence[str]) -> TrainingError:
    there = [part for part, own in PARTS.items() if any(fnmatchcase(name, each) for name in names for each in own)]
    return TrainingError(
        f"[train] freeze: {pattern!r} is no part of this model, and matches no weight's name",
        f"the parts are {', '.join(there)}; a pattern is like {names[0].partition('.')[0]}.*",
    )
