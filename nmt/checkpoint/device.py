"""Where a model computes."""

from __future__ import annotations

from typing import Literal, cast

import torch

from nmt.errors import NmtError


def choose(name: str = "auto") -> torch.device:
    """The device called `name`; auto is the GPU where there is one. Raises NmtError for one that isn't there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise NmtError(f"device = {name!r} is none of auto, cpu, cuda, cuda:N", "use --device auto") from error
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (device.index or 0) >= count:
            raise NmtError(f"device = {name!r}: this machine has {count} CUDA devices", "use --device auto or cpu")
    return device


def arithmetic(precision: str, device: torch.device) -> Literal["float32", "bfloat16"]:
    """What `precision` means on `device`: auto is bfloat16 where the hardware multiplies matrices of it by itself."""
    if precision != "auto":
        return cast(Literal["float32", "bfloat16"], precision)
    if device.type == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        asked = (getattr(torch.cpu, f"_is_{name}_supported", None) for name in ("avx512_bf16", "amx_tile"))
        native = any(has() for has in asked if has is not None)
    return "bfloat16" if native else "float32"
