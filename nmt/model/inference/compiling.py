"""Loops over numbers, compiled to the processor's own instructions at their first use on a machine.

Where numba cannot be installed, as for versions of Python that are too new for it, whoever has loops does without.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

AVAILABLE = find_spec("numba") is not None
"""Whether loops are compiled; otherwise they are too slow to be used."""
_ARITHMETIC = {"reassoc", "contract", "nsz", "arcp"}
"""Sums may be added up in the order of the processor's registers, which is the same for every row."""


def compiled(function: F) -> F:
    """`function` as machine code, which other threads run beside it. It is kept on disk for the next program.

    Where no folder can be written, every program compiles it anew.
    """
    if not AVAILABLE:
        return function
    try:
        return _compiled(function, kept=True)
    except RuntimeError:
        return _compiled(function, kept=False)


def _compiled(function: F, kept: bool) -> F:
    import numba

    made = numba.njit(cache=kept, nogil=True, fastmath=_ARITHMETIC, error_model="numpy")(function)
    file: Any = getattr(getattr(made, "_cache", None), "_cache_file", None)
    if hasattr(file, "_source_stamp"):
        file._source_stamp = file._source_stamp, _sources()
    return cast(F, made)


@cache
def _sources() -> str:
    """What changes with any loop of this package: numba itself looks only at the file that a function stands in.

    But it also holds what that function calls.
    """
    files = sorted(Path(__file__).parent.glob("*.py"))
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
