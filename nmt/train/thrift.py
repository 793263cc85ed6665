"""What keeps training on a processor small: three habits of the libraries beneath, changed. Nothing here loads torch.

Every batch has shapes of its own. Large tensors that come and go among small ones leave the heap in pieces, and oneDNN
keeps up to 1,024 products that it has prepared itself for, one for each shape: after a hundred updates these two are
more than all that is in use (docs/experiments.md, memory of whole trainings).
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import MutableMapping
from functools import cache
from typing import Any

_LARGE = 4 << 20
"""Bytes from which on memory comes from the system itself, and goes back to it at once."""
_PREPARED = "128"
_THRESHOLD = -3  # M_MMAP_THRESHOLD of malloc.h


def be_thrifty(environment: MutableMapping[str, str]) -> None:
    """Of a program that is going to train, before torch is loaded: `environment` is its own, where libraries look.

    What is said there already is left as it is.
    """
    environment.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", _PREPARED)
    environment.setdefault(
        "THP_MEM_ALLOC_ENABLE", "1"
    )  # torch's own: large memory in pages of 2 MiB, as it comes often
    choose = getattr(library(), "mallopt", None)
    if choose is not None and "MALLOC_MMAP_THRESHOLD_" not in environment:
        choose(_THRESHOLD, _LARGE)


@cache
def library() -> Any:
    """The C library that this process runs with; None where it is not known."""
    return ctypes.CDLL(None) if sys.platform == "linux" else None
