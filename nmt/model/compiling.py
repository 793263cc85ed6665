"""Loops over numbers, compiled to the processor's own instructions at their first use on a machine.

Where numba cannot be installed, as for versions of Python that are too new for it, whoever has loops does without.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar, cast

from nmt.events import FOR_THOSE_WHO_WAIT

F = TypeVar("F", bound=Callable[..., Any])


def _works() -> bool:
    if find_spec("numba") is None:
        return False
    try:
        from numba.core import config
    except ImportError:  # its own word for a NumPy or Python that it does not know
        return False
    settings: Any = config
    return not settings.DISABLE_JIT


_log = logging.getLogger(__name__)
AVAILABLE = _works()
"""Whether loops are compiled; otherwise they are too slow to be used."""
_WITH_LOOPS = ".", "inference", "kernels"
_ANY_ORDER = {"reassoc", "contract", "nsz"}


def compiled(function: F) -> F:
    """`function` as machine code, which other threads run beside it. It is kept on disk for the next program.

    Where no folder can be written, every program compiles it anew. Arithmetic is done as it is written: of a loop that
    writes, the compiler makes two versions, a slow one for arrays that may overlap or merely stand close together, and
    both have to give the same to the last digit. Products that a sum may take up unrounded are written as `fused`.
    """
    return _kept_where_possible(function, fastmath=False)


def compiled_part(function: F) -> F:
    """The same for a function that only compiled ones call: without a door for Python it takes less long to compile."""
    return _kept_where_possible(function, fastmath=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def compiled_sum(function: F) -> F:
    """The same for a function that adds up one number, and reads only: it does so in the order of the registers.

    That order depends on how many there are to be added, and on nothing else.
    """
    return _kept_where_possible(function, fastmath=_ANY_ORDER)


def compiled_callback(function: Callable[[Any], None], kind: str) -> Any:
    """A function of one address as machine code that others than Python call at its `address`, while it lives.

    `kind` is NumPy's name of the type of number that the function takes to stand there.
    """
    try:
        return _callback(function, kind, kept=True)
    except RuntimeError:
        return _callback(function, kind, kept=False)


def _callback(function: Callable[[Any], None], kind: str, kept: bool) -> Any:
    from numba import types
    from numba.core.ccallback import CFunc

    made: Any = CFunc(function, ((types.CPointer(getattr(types, kind)),), types.void), {}, {"error_model": "numpy"})
    if kept:
        made.enable_caching()
        _keep_carefully(made._cache)
    made.compile()
    return made


def _kept_where_possible(function: F, **how: Any) -> F:
    if not AVAILABLE:
        return function
    try:
        return _compiled(function, kept=True, **how)
    except RuntimeError:
        return _compiled(function, kept=False, **how)


def _compiled(function: F, kept: bool, **how: Any) -> F:
    import numba

    made: Any = numba.njit(cache=kept, nogil=True, error_model="numpy", **how)(function)
    if kept:
        _keep_carefully(made._cache)
    return cast(F, made)


def _hold_signals() -> None:
    """A signal that comes while something is compiled acts after that.

    It would act inside the compiler, which calls Python back from machine code: there an exception goes nowhere, and
    whoever asked the program to end would have to ask again.
    """
    from numba.core import event

    class Holder(event.Listener):
        depth = 0
        handlers: dict[int, Any] = {}
        came: list[int] = []

        def on_start(self, event: object) -> None:
            if threading.current_thread() is threading.main_thread():
                self.depth += 1
                if self.depth == 1:
                    ours = [number for number in (signal.SIGINT, signal.SIGTERM) if callable(signal.getsignal(number))]
                    self.handlers = {number: signal.signal(number, self.note) for number in ours}

        def note(self, number: int, frame: object) -> None:
            self.came.append(number)

        def on_end(self, event: object) -> None:
            if threading.current_thread() is threading.main_thread():
                self.depth -= 1
                if self.depth == 0:
                    for number, handler in self.handlers.items():
                        signal.signal(number, handler)
                    came, self.came = self.came, []
                    for number in came:
                        signal.raise_signal(number)

    event.register("numba:compiler_lock", Holder())


def _keep_carefully(cache: Any) -> None:
    """What is kept may be damaged, or there may be no room for it: then it is compiled again, and nothing ends.

    Two programs that compile a function for different types at once may both take the same file for what they made:
    what is found there is not always what was asked for.
    """
    from numba.core.sigutils import normalize_signature

    file: Any = getattr(cache, "_cache_file", None)
    if hasattr(file, "_source_stamp"):
        file._source_stamp = file._source_stamp, _sources()
    load, save = cache.load_overload, cache.save_overload

    def loaded(types: Any, *arguments: Any) -> Any:
        try:
            found = load(types, *arguments)
            fits = found is None or tuple(found.signature.args) == tuple(normalize_signature(types)[0])
        except Exception:
            found, fits = None, False
        if found is not None and fits:
            return found
        if not fits:
            with suppress(Exception):
                cache.flush()
        _ask_for_patience()
        return None

    def saved(*arguments: Any) -> None:
        with suppress(Exception):
            save(*arguments)

    cache.load_overload, cache.save_overload = loaded, saved


@cache
def _ask_for_patience() -> None:
    _log.log(FOR_THOSE_WHO_WAIT, "compiling loops for this processor: they are kept for the next time")


@cache
def _sources() -> str:
    """What changes with any loop of this package: numba itself looks only at the file that a function stands in.

    But it also holds what that function calls.
    """
    files = sorted(file for folder in _WITH_LOOPS for file in (Path(__file__).parent / folder).glob("*.py"))
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def fused(a: Any, b: Any, c: Any) -> Any:
    """a·b + c of float32 numbers, rounded once where the processor does so in one instruction."""
    return a * b + c


if AVAILABLE:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    def _fused(typing: Any, a: Any, b: Any, c: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            number = ir.FloatType()
            kind = ir.FunctionType(number, [number] * 3)
            return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.fmuladd.f32"), arguments)

        return types.float32(types.float32, types.float32, types.float32), generate

    fused = cast(Any, intrinsic(_fused))
    _hold_signals()
