"""What loops are written with: their words, the arrays these point to, and the numbers in there.

A loop is a function of one address. There stand 64-bit integers: the number of items, then the loop's own: numbers, and
addresses of arrays. Each thread takes a share of the items, and an item's result must not depend on the share it is in.

The numbers are float32, or bfloat16 as the 16 bits that it is, since NumPy has no such type: the address is of the one
or the other, and a loop is compiled for each. Inside it all is float32.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from nmt.model.compiling import AVAILABLE, compiled_part
from nmt.model.inference.loops import half
from nmt.model.kernels.team import FIRST, WORDS, openmp


def numbers(address, word, rows, columns):
    """The matrix of the loop's type of number that stands at the address in a word."""


def read(x):
    """A number of either type as float32."""
    return x


def as_in(y, x):
    """The float32 number `x` in the type of the array `y`."""
    return x


if AVAILABLE and openmp() is not None:
    from llvmlite import binding, ir
    from numba import types
    from numba.extending import intrinsic, overload
    from numba.np.numpy_support import carray

    def _told(name: str) -> Any:
        binding.add_symbol(name, ctypes.cast(getattr(openmp(), name), ctypes.c_void_p).value)
        return types.ExternalFunction(name, types.int32())

    _member, _members = _told("omp_get_thread_num"), _told("omp_get_num_threads")

    def _at(typing, address):
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            (given,), place = arguments, ir.IntType(8).as_pointer()
            is_number = isinstance(signature.args[0], types.Integer)
            return builder.inttoptr(given, place) if is_number else builder.bitcast(given, place)

        return types.voidptr(address), generate

    _place: Any = intrinsic(_at)  # of a number or an address of anything, the address of nothing in particular

    @overload(numbers, inline="always")
    def _numbers(address, word, rows, columns):
        if address.dtype == types.uint16:
            return lambda address, word, rows, columns: carray(_place(word), (rows, columns), np.uint16)
        return lambda address, word, rows, columns: carray(_place(word), (rows, columns), np.float32)

    @overload(read, inline="always")
    def _read(x):
        if x == types.uint16:
            return lambda x: np.int32(np.int32(x) << np.int32(16)).view(np.float32)
        return lambda x: x

    @overload(as_in, inline="always")
    def _as_in(y, x):
        if y.dtype == types.uint16:
            return lambda y, x: half(x)
        return lambda y, x: x


@compiled_part
def member():
    """The number of the thread that asks, from 0."""
    return np.int64(_member())


@compiled_part
def share(address):
    """The loop's words, and the first item of this thread's share and the one after its last.

    There may be fewer threads than were asked for: OpenMP has limits of its own.
    """
    words = carray(_place(address), (WORDS,), np.int64)
    threads, items = np.int64(_members()), words[0]
    return words[FIRST:], items * member() // threads, items * (member() + 1) // threads


@compiled_part
def floats(address, rows, columns):
    """The float32 matrix that stands at an address."""
    return carray(_place(address), (rows, columns), np.float32)


@compiled_part
def shorts(address, rows, columns):
    """The int16 matrix that stands at an address."""
    return carray(_place(address), (rows, columns), np.int16)


@compiled_part
def integers(address, rows, columns):
    """The int64 matrix that stands at an address."""
    return carray(_place(address), (rows, columns), np.int64)
