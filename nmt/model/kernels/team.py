"""Loops of our own, run by the threads that torch has at hand between its operations.

Threads of our own would take turns with torch's, which stay busy for a while after each operation and wait for the
next. So the loops run where torch's do: in the team of the OpenMP library (GNU's, or one that is called as it is) that
torch has loaded. Where there is none, as outside Linux, or nothing compiles loops, whoever has a loop does without.

What a loop is written with stands in nmt.model.kernels.words; that module, and those of the loops, are imported when
training begins: translating needs none of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nmt.model import compiling

try:
    import resource
except ImportError:  # not on this system
    resource = None  # type: ignore[assignment]

KINDS = {torch.float32: "float32", torch.bfloat16: "uint16"}
"""The types of numbers that there are loops for, and NumPy's name of what they are to a loop."""
WORDS = 24  # integers that a loop is given; those not used are zero
FIRST = 1  # of the loop's own; before them stands the number of items


@cache
def openmp() -> Any:
    """The library that torch's threads belong to, found through torch's own; None where it has none, or another."""
    for file in (Path(torch.__file__).parent / "lib").glob("libtorch_cpu.so"):
        try:
            library = ctypes.CDLL(str(file))
            library.GOMP_parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
            library.GOMP_parallel.restype = None
            return library if library.omp_get_thread_num and library.omp_get_num_threads else None
        except (OSError, AttributeError):
            return None
    return None


def available() -> bool:
    """Whether loops can be run."""
    return compiling.AVAILABLE and openmp() is not None


def is_whole() -> bool:
    """Whether OpenMP runs as many threads as it is asked for: with fewer, oneDNN leaves parts of a product blank."""
    library = openmp()
    if library is None:
        return True
    return not library.omp_get_dynamic() and library.omp_get_thread_limit() >= torch.get_num_threads()


def make_whole() -> None:
    """See to it that it is: torch leaves bfloat16's products to oneDNN, whatever OpenMP gives."""
    if (library := openmp()) is not None:
        library.omp_set_dynamic(0)
        torch.set_num_threads(min(torch.get_num_threads(), library.omp_get_thread_limit()))


def memory_may_be_refused() -> bool:
    """Whether the process has a limit of memory that the system holds by refusing more: of all, or of what it writes.

    torch's own operations then say that there is none, and training makes its batches smaller. A loop cannot say so,
    and oneDNN reads what it has not got.
    """
    if resource is None:
        return False
    limits = resource.RLIMIT_AS, resource.RLIMIT_DATA
    return any(resource.getrlimit(limit)[0] != resource.RLIM_INFINITY for limit in limits)


def reaches(x: Tensor) -> bool:
    """Whether loops can be run over `x`: it has numbers, and in this process's memory, of which there is no end."""
    real = type(x) in {Tensor, torch.nn.Parameter} and x.device.type == "cpu"
    return real and not torch.compiler.is_compiling() and available() and not memory_may_be_refused()


class Loop:
    """A loop over independent items, compiled for a type of numbers when it is first run over them."""

    def __init__(self, function: Callable[[Any], None]) -> None:
        self._function = function
        self._code: dict[torch.dtype, Any] = {}

    def __call__(self, dtype: torch.dtype, items: int, *words: int | Tensor) -> None:
        """Run it over so many items; of tensors, which must be contiguous, it is given the address."""
        if dtype not in self._code:
            self._code[dtype] = compiling.compiled_callback(self._function, KINDS[dtype])
        given = np.zeros(WORDS, np.int64)
        threads = max(min(torch.get_num_threads(), items), 1)
        own = [word.data_ptr() if isinstance(word, Tensor) else word for word in words]
        given[0] = items
        given[FIRST : FIRST + len(own)] = own
        openmp().GOMP_parallel(self._code[dtype].address, given.ctypes.data, threads, 0)
