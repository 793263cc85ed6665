"""How much memory there is, and how much this process has had: the GPU's, or the machine's as far as it may be used."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import torch

from nmt.train.thrift import library

PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def available(device: torch.device) -> int:
    """Bytes that this process could still get on `device`."""
    if device.type == "cuda":
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + cached
    return max(0, min(_bounds()))


def used(device: torch.device) -> int:
    """Bytes that this process has now."""
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device)
    return _status("VmRSS") or _largest_ever()


def forget_peak(device: torch.device) -> None:
    """Let `peak` begin anew, where the system can."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return
    with suppress(OSError):  # then it is the largest ever
        (PROC / "self/clear_refs").write_text("5")


def peak(device: torch.device) -> int:
    """The most bytes that this process has had at once since `forget_peak`."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return _status("VmHWM") or _largest_ever()


def give_back() -> None:
    """Let the system have the memory back that was freed here and there.

    Every batch has shapes of its own, and what they leave between what is still in use is more, after some hundred
    updates, than all that is in use. Only the C library of GNU systems can be asked for it; others do without.
    """
    trim = getattr(library(), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _bounds() -> Iterator[int]:
    """What the machine, the process's own limits and its control groups leave."""
    yield _read(PROC / "meminfo", "MemAvailable") or sys.maxsize
    for limit, name in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
        most = resource.getrlimit(limit)[0]
        if most != resource.RLIM_INFINITY:
            yield most - _status(name)
    for group in _groups():
        try:
            yield int((group / "memory.max").read_text()) - int((group / "memory.current").read_text())
        except (OSError, ValueError):  # no such file, or no limit: "max"
            continue


def _groups() -> Iterator[Path]:
    """The control group of this process and all those around it (version 2)."""
    try:
        lines = (PROC / "self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        if line.startswith("0::"):
            here = CGROUPS / line.removeprefix("0::/")
            yield from (here, *(parent for parent in here.parents if parent.is_relative_to(CGROUPS)))


def _status(name: str) -> int:
    return _read(PROC / "self/status", name)


def _read(path: Path, name: str) -> int:
    """The bytes that a file of /proc tells under this name, or 0."""
    try:
        text = path.read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith(f"{name}:")), 0)


def _largest_ever() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
