"""How much a device can do: what the vendor says of it, or what is measured."""

from __future__ import annotations

import torch

from nmt.train.gpus import of_device
from nmt.train.pace import matrix_product_speed


def peak(device: torch.device, precision: str, given: float | None) -> tuple[float, str]:
    """FLOPs a second that the device can do, and where that comes from: given, the vendor, or measured."""
    if given is not None:
        return given * 1e12, "given"
    if device.type == "cuda" and precision == "bfloat16":
        known = of_device(torch.cuda.get_device_name(device))
        if known is not None and known.bfloat16 is not None:
            return known.bfloat16 * 1e12, "vendor"
    return matrix_product_speed(device, precision), "measured"
