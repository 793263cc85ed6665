"""Lines in, chunks of lines out: large while there is more to read, small as soon as the input pauses."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

PAUSE_SECONDS = 0.02
_END = object()


def live(lines: Iterable[T], ahead: int = 1024) -> Iterator[T | None]:
    """The lines as they come, read by a thread at most `ahead` lines ahead; None whenever the input pauses.

    For pipes and terminals, where waiting for a full buffer could mean waiting for ever. An error in reading is
    raised in its place. The thread ends with the input, or at the latest with the process.
    """
    arrived: queue.Queue[object] = queue.Queue(maxsize=max(ahead, 1))
    unwanted = threading.Event()
    threading.Thread(target=_read, args=(lines, arrived, unwanted), daemon=True, name="nmt input").start()
    paused = True
    try:
        while True:
            try:
                item = arrived.get(timeout=None if paused else PAUSE_SECONDS)
            except queue.Empty:
                paused = True
                yield None
                continue
            if item is _END:
                return
            if isinstance(item, _Failure):
                raise item.error
            paused = False
            yield item  # type: ignore[misc]
    finally:
        unwanted.set()


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def _read(lines: Iterable[object], arrived: queue.Queue[object], unwanted: threading.Event) -> None:
    def put(item: object) -> bool:
        while not unwanted.is_set():
            try:
                arrived.put(item, timeout=0.5)
                return True
            except queue.Full:
                continue
        return False

    try:
        for line in lines:
            if not put(line):
                return
    except BaseException as error:
        put(_Failure(error))
    else:
        put(_END)


def chunks(lines: Iterable[T | None], size: int) -> Iterator[list[T]]:
    """Lists of up to `size` lines; a None among the lines hands on what has come so far."""
    chunk: list[T] = []
    for line in lines:
        if line is not None:
            chunk.append(line)
        if chunk and (line is None or len(chunk) >= size):
            yield chunk
            chunk = []
    if chunk:
        yield chunk
