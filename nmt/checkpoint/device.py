"""Where a model computes."""

from __future__ import annotations

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
