"""Memory that large tensors leave behind among small ones."""

from __future__ import annotations

import platform

import pytest
import torch

from nmt.train import memory
from nmt.train.thrift import be_thrifty


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only this C library can be told")
def test_large_memory_goes_back_to_the_system_at_once() -> None:
    environment = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "7"}
    be_thrifty(environment)
    assert environment["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "7"
    device, small = torch.device("cpu"), []
    for _ in range(3):  # left alone, the library would learn from the first round to keep such blocks
        large = []
        for _ in range(20):
            large.append(torch.ones(2 << 20))  # 8 MiB
            small.append(torch.ones(16 << 10))
        full = memory.used(device)
        del large
        assert full - memory.used(device) > 150 << 20
