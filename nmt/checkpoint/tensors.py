"""Tensors to and from safetensors files. Nothing pickled is ever opened or written."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from nmt.checkpoint.header import read_header
from nmt.errors import ModelError, OutputError, TrainingError

KINDS = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.float64: "F64"}
"""What safetensors calls the types that a model's numbers may have."""


def weights(model: nn.Module) -> dict[str, Tensor]:
    """The model's parameters and kept buffers by name, a tied one once, under its first name."""
    aliases = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    buffers = {name: tensor for name, tensor in model.state_dict().items() if name not in aliases}
    return {name: p.detach() for name, p in model.named_parameters()} | buffers


def whole(tensor: Tensor) -> Tensor:
    """The tensor; of one that is spread over processes, which all call this, all of it."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def spread_like(tensor: Tensor, other: Tensor) -> Tensor:
    """The tensor, or this process's part of it where `other` of the same shape is spread over processes."""
    if not hasattr(other, "full_tensor") or tensor.shape != other.shape:
        return tensor
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(other, DTensor)
    return distribute_tensor(tensor.to(other.device), other.device_mesh, other.placements)


def part_like(tensor: Tensor, other: Tensor) -> Tensor:
    """What `spread_like` gives where every process has the same tensor, which nobody need then send."""
    if not hasattr(other, "full_tensor"):
        return tensor
    from torch.distributed.tensor import DTensor, Replicate

    assert isinstance(other, DTensor)
    everywhere = DTensor.from_local(tensor, other.device_mesh, [Replicate()], run_check=False)
    return everywhere.redistribute(placements=other.placements)


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write `tensors`, from whatever device, so that they open anywhere. Raises OutputError; TrainingError for NaN."""
    plain = {name: tensor.detach().to("cpu").contiguous() for name, tensor in tensors.items()}
    bad = first_not_finite(plain)
    if bad is not None:
        raise TrainingError(
            f"{_final(path)}: {bad} holds a value that is not finite; such weights are never saved",
            "go on from the checkpoint before with a lower learning rate, or set train.clip_norm = 1.0",
        )
    try:
        path.touch()
        mode = path.stat().st_mode & 0o777
        save_file(plain, path)
        path.chmod(mode)  # as any new file's here: safetensors would let nobody else read it
    except (SafetensorError, OSError) as error:
        hint = "check that the folder may be written and that the disk has room"
        raise OutputError(f"{_final(path)}: cannot be written: {_reason(error)}", hint) from error


def first_not_finite(tensors: Mapping[str, Tensor]) -> str | None:
    """Name of the first tensor that holds an infinity or NaN, or None."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            return name
    return None


def _final(path: Path) -> Path:
    """The name that a file gets once the folder being filled is whole: the one that its owner knows."""
    return Path(*(part.removesuffix(".partial") for part in path.parts))


def _reason(error: Exception) -> str:
    """The system's own words, also where safetensors tells only the number of its error."""
    number = re.search(r"\(os error (\d+)\)", str(error))
    if number:
        return os.strerror(int(number[1]))
    return (error.strerror if isinstance(error, OSError) else None) or " ".join(str(error).split())


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Every tensor of the file, on the CPU. Raises ModelError."""
    read_header(path)
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise ModelError(
            f"{path}: is damaged: {_reason(error)}", "take another checkpoint, or copy the file again"
        ) from error
