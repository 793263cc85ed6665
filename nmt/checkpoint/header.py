"""The header of a safetensors file, read without torch: names, shapes, and whether the file is whole.

Eight bytes of length, that much JSON, then nothing but numbers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nmt.errors import ModelError

Shapes = dict[str, tuple[int, ...]]


def read_shapes(path: Path) -> Shapes:
    """Name and shape of every tensor, from the header alone. Raises ModelError for a missing, cut or foreign file."""
    return {name: tuple(entry["shape"]) for name, entry in read_header(path).items()}


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


def read_header(path: Path) -> dict[str, Any]:
    """Type, shape and place of every tensor. Raises ModelError for a missing, cut or foreign file."""
    again = "take another checkpoint, or copy the file again"
    try:
        with path.open("rb") as stream:
            size = path.stat().st_size
            start = stream.read(9)
            length = int.from_bytes(start[:8], "little")
            if start[8:] != b"{" and start.startswith((b"PK\x03\x04", b"\x80")):  # a length may begin with any byte
                raise ModelError(f"{path}: is a pickled PyTorch file, not safetensors; nmt never opens one", again)
            if size < 8 + length or size < 8:
                raise ModelError(f"{path}: is cut off: {size} bytes are fewer than its header tells", again)
            header = json.loads(start[8:] + stream.read(max(0, length - 1)))
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
