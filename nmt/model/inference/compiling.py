"""Loops over numbers, compiled to the processor's own instructions at their first use on a machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])

_ARITHMETIC = {"reassoc", "contract", "nsz", "arcp"}
"""Sums may be added up in the order of the processor's registers, which is the same for every row."""


def compiled(function: F) -> F:
    """`function` as machine code, which other threads run beside it. It is kept on disk for the next program.

    Where no folder can be written, every program compiles it anew.
    """
    try:
        return _compiled(function, kept=True)
    except RuntimeError:
        return _compiled(function, kept=False)


def _compiled(function: F, kept: bool) -> F:
    return cast(F, numba.njit(cache=kept, nogil=True, fastmath=_ARITHMETIC, error_model="numpy")(function))
