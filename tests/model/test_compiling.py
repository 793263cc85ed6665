"""Loops that are kept for the next program, and what becomes of what is kept."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import logging
import os
import pkgutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import nmt
from nmt.events import FOR_THOSE_WHO_WAIT
from nmt.model import compiling

numba = pytest.importorskip("numba")

LOOP = """
from nmt.model.compiling import compiled

@compiled
def double(x):
    return 2 * x
"""


@pytest.fixture
def used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Import the loop anew, as the next program does, and use it: how often it was found among what is kept."""
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "double.py").write_text(LOOP)

    def use(number: float = 21) -> int:
        specification = importlib.util.spec_from_file_location("double", tmp_path / "double.py")
        assert specification is not None and specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        assert module.double(number) == 2 * number
        return sum(module.double.stats.cache_hits.values())

    return use


@pytest.mark.parametrize(("kept", "damage"), [("*.nbi", b""), ("*.nbi", b"\x80"), ("*.nbc", b""), ("*.nbc", b"\x80")])
def test_a_loop_is_compiled_once_and_again_where_what_was_kept_is_damaged(
    used: Callable[..., int], tmp_path: Path, kept: str, damage: bytes
) -> None:
    assert (used(), used()) == (0, 1)
    for file in (tmp_path / "cache").rglob(kept):
        file.write_bytes(damage)
    assert (used(), used()) == (0, 1)


def test_what_was_kept_for_other_types_is_not_used(used: Callable[..., int], tmp_path: Path) -> None:
    assert (used(21), used(1.5), used(1.5)) == (0, 0, 1)
    first, second = sorted((tmp_path / "cache").rglob("*.nbc"))
    second.write_bytes(first.read_bytes())  # as two programs may leave it that write at once
    assert (used(1.5), used(1.5), used(21), used(21)) == (0, 1, 0, 1)


def test_a_loop_that_cannot_be_kept_works_all_the_same(
    used: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(numba.core.caching.IndexDataCacheFile, "save", full)
    assert (used(), used()) == (0, 0)


def test_where_numba_does_not_compile_nothing_is_compiled() -> None:
    code = "from nmt.model import compiling; from nmt.model.inference import compiled; assert not compiling.AVAILABLE"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, check=True)


def all_loops() -> Iterator[Any]:
    """Every function of the package that is compiled."""
    for found in pkgutil.walk_packages(nmt.__path__, "nmt."):
        module = importlib.import_module(found.name)
        for one in vars(module).values():
            if isinstance(one, numba.core.dispatcher.Dispatcher) and one.__module__ == found.name:
                yield one


def test_whatever_writes_computes_as_it_is_written() -> None:
    """Only of sums is the order free: of a loop that writes, where its arrays stand decides which code runs."""
    summing = [one for one in all_loops() if one.targetoptions.get("fastmath")]
    assert len(summing) > 2
    for one in summing:
        written = ast.walk(ast.parse(textwrap.dedent(inspect.getsource(one.py_func))))
        assert not any(isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) for node in written), one


class Asked(Exception):
    """What the handler of a signal raises."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_something_is_compiled_acts_after_that(number: signal.Signals) -> None:
    from numba.core.compiler_lock import global_compiler_lock

    def ask(number: int, frame: object) -> None:
        raise Asked

    compiled, before = False, signal.signal(number, ask)
    try:
        with pytest.raises(Asked), global_compiler_lock:
            with global_compiler_lock:
                signal.raise_signal(number)
            compiled = True
        assert compiled and signal.getsignal(number) is ask
    finally:
        signal.signal(number, before)


def test_who_waits_for_the_first_use_is_told_why(used: Callable[..., int]) -> None:
    told: list[str] = []
    handler = logging.Handler(FOR_THOSE_WHO_WAIT)
    handler.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("nmt.model.compiling")
    logger.addHandler(handler)
    before = logger.level
    logger.setLevel(FOR_THOSE_WHO_WAIT)
    try:
        for expected in (1, 0):
            compiling._ask_for_patience.cache_clear()
            told.clear()
            used()
            assert len(told) == expected
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
