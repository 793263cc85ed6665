"""What stands beside every measured number: when, on what, of which commit."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nmt

ROOT = Path(__file__).parents[1]


def record(name: str, settings: dict[str, Any], results: dict[str, Any], save: bool) -> None:
    """Print a result as one line of JSON; with `save`, keep it in benchmarks/results too."""
    data = described(name, settings, results, datetime.now(UTC))
    print(json.dumps(data))
    if save:
        print(f"wrote {keep(data).relative_to(ROOT)}", file=sys.stderr)


def described(name: str, settings: dict[str, Any], results: dict[str, Any], begun: datetime) -> dict[str, Any]:
    """A result with what stands beside it."""
    return {
        "benchmark": name,
        "date": begun.isoformat(timespec="seconds"),
        "commit": _commit(),
        "nmt": nmt.__version__,
        "hardware": _hardware(),
        "settings": settings,
        "results": results,
    }


def keep(data: dict[str, Any]) -> Path:
    """Write a result into benchmarks/results, over an earlier part of the same one."""
    begun = datetime.fromisoformat(data["date"])
    path = ROOT / "benchmarks" / "results" / f"{data['benchmark']}-{begun:%Y%m%d-%H%M%S}.json"
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    return path


def _commit() -> str:
    """The commit, with a plus when the program has changed since; empty outside a repository."""

    def git(*arguments: str) -> str:
        ended = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
        return ended.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "nmt", "cli")
    return git("rev-parse", "--short", "HEAD") + "+" * bool(changed)


def _hardware() -> dict[str, Any]:
    hardware: dict[str, Any] = {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        hardware["torch"] = torch.__version__
        if torch.cuda.is_available():
            hardware["gpu"] = torch.cuda.get_device_name()
    return hardware


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
