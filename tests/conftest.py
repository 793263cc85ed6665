"""One thread for torch, so that tests running side by side do not fight and repeat bit for bit; files in memory.

No example of a generated test has a deadline: a machine that is busy is no fault.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

MEMORY, ROOM = Path("/dev/shm"), 4 << 30


def _holds_files(memory: Path) -> bool:
    """Whether files there are as good as any, and have room."""
    usable = os.access(memory, os.W_OK) and not os.statvfs(memory).f_flag & os.ST_NOEXEC
    return usable and shutil.disk_usage(memory).free > ROOM


os.environ.pop("PYTHONUNBUFFERED", None)  # commands run as their users run them: it would hide what buffers do
if _holds_files(MEMORY):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))  # a disk is waited for at every file that is saved

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(autouse=True, scope="session")
def _begin(tmp_path_factory: pytest.TempPathFactory) -> None:
    """One thread; and where several processes share the tests, loops compiled once."""
    import torch

    torch.set_num_threads(1)
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        import ahead

        ahead.compile_kinds(tmp_path_factory.getbasetemp().parent, backwards=worker == "gw1")
