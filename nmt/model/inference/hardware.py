"""What the processor multiplies fast."""

from __future__ import annotations

import torch


def multiplies_int8() -> bool:
    """Whether it adds up products of 8-bit whole numbers in 32 bits by itself: without that, sums would be cut off."""
    return all(_has(name) for name in ("avx512", "vnni"))


def fastest(device: torch.device) -> str:
    """The arithmetic that "auto" means: int8 on processors made for it, bfloat16 on such GPUs, float16 on others."""
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"
    return "int8" if multiplies_int8() else "float32"


def _has(name: str) -> bool:
    supports = getattr(torch.cpu, f"_is_{name}_supported", None)
    return supports is not None and bool(supports())
