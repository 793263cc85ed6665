"""Safetensors files: their header, what they must hold, and writing them.

Nothing pickled is ever opened: a header is JSON, and all that follows it is numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from nmt.errors import ModelError, OutputError, TrainingError

Shapes = dict[str, tuple[int, ...]]


def weights(model: nn.Module) -> dict[str, Tensor]:
    """The model's parameters and kept buffers by name, a tied one once, under its first name."""
    aliases = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    buffers = {name: tensor for name, tensor in model.state_dict().items() if name not in aliases}
    return {name: p.detach() for name, p in model.named_parameters()} | buffers


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write `tensors`, from whatever device, so that they open anywhere. Raises OutputError; TrainingError for NaN."""
    plain = {name: tensor.detach().to("cpu").contiguous() for name, tensor in tensors.items()}
    for name, tensor in plain.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise TrainingError(
                f"{path}: {name} holds a value that is not finite; such weights are never saved",
                "go on from the checkpoint before with a lower learning rate, or set train.clip_norm = 1.0",
            )
    try:
        save_file(plain, path)
    except (SafetensorError, OSError) as error:
        hint = "check that the folder may be written and that the disk has room"
        raise OutputError(f"{path}: cannot be written: {error}", hint) from error


def read_shapes(path: Path) -> Shapes:
    """Name and shape of every tensor, from the header alone. Raises ModelError for a missing, cut or foreign file."""
    return {name: tuple(entry["shape"]) for name, entry in _header(path).items()}


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Every tensor of the file, on the CPU. Raises ModelError."""
    _header(path)
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{path}: is damaged: {error}", "take another checkpoint, or copy the file again") from error


def check_shapes(path: Path, expected: Shapes) -> None:
    """Raises ModelError naming the first difference between what the file holds and what the model needs."""
    found = read_shapes(path)
    hint = "the folder's files do not belong together; take them all from one checkpoint"
    for name, shape in expected.items():
        if name not in found:
            raise ModelError(f"{path}: {name} is missing", hint)
        if found[name] != shape:
            raise ModelError(f"{path}: {name} is {_size(found[name])}; model.json describes {_size(shape)}", hint)
    extra = sorted(found.keys() - expected.keys())
    if extra:
        raise ModelError(f"{path}: {extra[0]} is no part of the model that model.json describes", hint)


def _header(path: Path) -> dict[str, Any]:
    again = "take another checkpoint, or copy the file again"
    try:
        with path.open("rb") as stream:
            size = path.stat().st_size
            start = stream.read(8)
            length = int.from_bytes(start, "little")
            if start[:2] in {b"PK", b"\x80\x02"} or start[:1] == b"\x80":
                raise ModelError(f"{path}: is a pickled PyTorch file, not safetensors; nmt never opens one", again)
            if size < 8 + length or size < 8:
                raise ModelError(f"{path}: is cut off: {size} bytes are fewer than its header tells", again)
            header = json.loads(stream.read(length))
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}", "check that the folder is complete") from error
    except ValueError as error:
        raise ModelError(f"{path}: is damaged: its header is not JSON", again) from error
    header.pop("__metadata__", None)
    end = 8 + length + max((entry["data_offsets"][1] for entry in header.values()), default=0)
    if size != end:
        what = "is cut off" if size < end else "is damaged"
        raise ModelError(f"{path}: {what}: it has {size} bytes, its header tells {end}", again)
    return dict(header)


def _size(shape: tuple[int, ...]) -> str:
    return " x ".join(str(n) for n in shape) or "a single number"
