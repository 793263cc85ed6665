"""One thread for torch, so that tests running side by side do not fight and repeat bit for bit."""

from __future__ import annotations

import os

import pytest

os.environ.pop("PYTHONUNBUFFERED", None)  # commands run as their users run them: it would hide what buffers do


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)
