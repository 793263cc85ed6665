"""Memory that large blocks leave behind among small ones."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from nmt.train.thrift import be_thrifty

BLOCKS = """
import re
from nmt.train.thrift import be_thrifty

def used():
    return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10

be_thrifty({})
small, given_back = [], []
for _ in range(3):  # left alone, the library would learn from the first round to keep such blocks
    large = []
    for _ in range(10):
        large.append(b"1" * (8 << 20))
        small.append(b"1" * (64 << 10))
    full = used()
    del large
    given_back.append(full - used())
print(min(given_back) >> 20)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only this C library can be told")
def test_large_memory_goes_back_to_the_system_at_once() -> None:
    ended = subprocess.run([sys.executable, "-c", BLOCKS], capture_output=True, text=True, check=True)
    assert int(ended.stdout) >= 75


def test_what_the_environment_says_stays() -> None:
    environment = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "7", "MALLOC_MMAP_THRESHOLD_": "65536"}
    be_thrifty(environment)
    assert environment["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "7"
