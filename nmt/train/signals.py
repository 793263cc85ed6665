"""Ctrl-C and SIGTERM ask training to save and end after the current update, instead of losing what was learned."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_on_signals() -> Iterator[Callable[[], str | None]]:
    """Within the block, a function that tells which signal has asked to stop, or None; the first only asks.

    A second one does what it would have done without us. Handlers are Python's main thread's: in any other thread
    nothing is installed, and the function always says None.
    """
    asked: list[str] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, frame: FrameType | None) -> None:
        asked.append(signal.Signals(number).name)
        for each, handler in before.items():
            signal.signal(each, handler if handler is not None else signal.SIG_DFL)

    try:
        for number in before:
            signal.signal(number, ask)
        yield lambda: f"interrupted by {asked[0]}; the same command goes on" if asked else None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
