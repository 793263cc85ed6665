"""The header of a safetensors file, read without torch: names, types, shapes, and whether the file is whole.

Eight bytes of length, that much JSON, then nothing but numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, TypeGuard

from nmt.errors import ModelError

Shapes = dict[str, tuple[int, ...]]

# Bytes of one number of each type.
BYTES = {
    **dict.fromkeys(("F64", "I64", "U64"), 8),
    **dict.fromkeys(("F32", "I32", "U32"), 4),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 2),
    **dict.fromkeys(("I8", "U8", "BOOL"), 1),
}
_AGAIN = "take another checkpoint, or copy the file again"


def read_shapes(path: Path) -> Shapes:
    """Name and shape of every tensor, from the header alone. Raises ModelError for a missing, cut or foreign file."""
    return {name: tuple(entry["shape"]) for name, entry in read_header(path).items()}


def check_weights(path: Path, expected: Shapes, kinds: Mapping[str, str]) -> None:
    """Raises ModelError naming the first difference between what the file holds and what the model needs.

    `kinds` are the numbers' types as safetensors calls them, by the tensors' names.
    """
    header = read_header(path)
    found = {name: tuple(entry["shape"]) for name, entry in header.items()}
    hint = "the folder's files do not belong together; take them all from one checkpoint"
    for name, shape in expected.items():
        if name not in found:
            raise ModelError(f"{path}: {name} is missing", hint)
        if found[name] != shape:
            raise ModelError(f"{path}: {name} is {_size(found[name])}; model.json describes {_size(shape)}", hint)
        if header[name]["dtype"] != kinds[name]:
            raise ModelError(f"{path}: {name} holds {header[name]['dtype']}; the model needs {kinds[name]}", hint)
    extra = sorted(found.keys() - expected.keys())
    if extra:
        raise ModelError(f"{path}: {extra[0]} is no part of the model that model.json describes", hint)


def read_header(path: Path) -> dict[str, Any]:
    """Type, shape and place of every tensor. Raises ModelError for a missing, cut, damaged or foreign file."""
    try:
        with path.open("rb") as stream:
            size = path.stat().st_size
            start = stream.read(9)
            length = int.from_bytes(start[:8], "little")
            if start[8:] != b"{" and start.startswith((b"PK\x03\x04", b"\x80")):  # a length may begin with any byte
                raise ModelError(f"{path}: is a pickled PyTorch file, not safetensors; nmt never opens one", _AGAIN)
            if size < 8 + length or size < 8:
                raise ModelError(f"{path}: is cut off: {size} bytes are fewer than its header tells", _AGAIN)
            header = json.loads(start[8:] + stream.read(max(0, length - 1)))
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}", "check that the folder is complete") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: is damaged: its header is not JSON", _AGAIN) from error
    if not isinstance(header, dict):
        raise ModelError(f"{path}: is damaged: its header lists no tensors", _AGAIN)
    header.pop("__metadata__", None)
    for name, entry in header.items():
        if not _is_whole(name, entry):
            raise ModelError(f"{path}: is damaged: its header describes no tensor at {name[:80]!r}", _AGAIN)
    end = 8 + length + max((entry["data_offsets"][1] for entry in header.values()), default=0)
    if size != end:
        what = "is cut off" if size < end else "is damaged"
        raise ModelError(f"{path}: {what}: it has {size} bytes, its header tells {end}", _AGAIN)
    return header


def _is_whole(name: str, entry: Any) -> bool:
    """Whether a header's entry tells a type, a shape and a place, and these agree."""
    if not (name.isprintable() and isinstance(entry, dict) and isinstance(entry.get("dtype"), str)):
        return False
    shape, place = entry.get("shape"), entry.get("data_offsets")
    if entry["dtype"] not in BYTES or not _are_sizes(shape) or not _are_sizes(place) or len(place) != 2:
        return False
    return bool(place[1] - place[0] == prod(shape) * BYTES[entry["dtype"]])


def _are_sizes(numbers: object) -> TypeGuard[list[int]]:
    """Whether it is a list of whole numbers that sizes may be; larger ones are of no file."""
    return isinstance(numbers, list) and all(type(number) is int and 0 <= number < 2**48 for number in numbers)


def _size(shape: tuple[int, ...]) -> str:
    return " x ".join(str(n) for n in shape) or "a single number"
