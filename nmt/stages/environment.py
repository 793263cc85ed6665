"""The machine and the versions that a stage ran with, for its manifest."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "numpy", "sentencepiece", "sacremoses", "sacrebleu", "safetensors")


def environment() -> dict[str, Any]:
    """Versions and hardware. A GPU is named only where torch is loaded already: asking must not load it."""
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _processor(Path("/proc/cpuinfo")),
        "cores": os.cpu_count(),
    }
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        found["gpus"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return found


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _processor(cpuinfo: Path) -> str:
    """The processor's name, where the system tells it."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
