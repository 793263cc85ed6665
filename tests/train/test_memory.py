"""What a process asks of the system's memory, and gives back."""

from __future__ import annotations

import platform

import pytest
import torch

from nmt.train import memory


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only this C library can be asked for it")
def test_memory_that_was_freed_between_what_is_in_use_goes_back_to_the_system() -> None:
    device, blocks = torch.device("cpu"), [torch.ones(16 << 10) for _ in range(3200)]  # 64 KiB each
    full = memory.used(device)
    kept = blocks[::16]
    del blocks
    memory.give_back()
    assert full - memory.used(device) > 150 << 20
    assert all(bool((block == 1).all()) for block in kept)
