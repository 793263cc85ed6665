"""Batches side by side: several threads, each of which computes on its share of the processor.

Two batches on one core each are faster than one batch on two cores: most operations of a step are too small to be
divided. Threads share the model's memory, and torch computes without holding Python's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

T = TypeVar("T")


def side_by_side(work: Callable[[T], None], items: Sequence[T], workers: int | None) -> None:
    """`work` on every item, `workers` at a time, by default as many as torch has threads.

    An exception of any of them is raised after those under way have ended; what was not begun is left.
    """
    for _ in done_side_by_side(work, items, workers):
        pass


def done_side_by_side(work: Callable[[T], None], items: Sequence[T], workers: int | None) -> Iterator[T]:
    """The same, telling each item, in their order, once its work is done."""
    threads = torch.get_num_threads()
    workers = min(workers or threads, len(items))

    def apart(item: T) -> T:
        with torch.inference_mode():  # which each thread has to say for itself
            work(item)
        return item

    if workers <= 1:
        yield from map(apart, items)
        return
    with _share(max(threads // workers, 1), threads) as begin, ThreadPoolExecutor(workers, initializer=begin) as pool:
        done = [pool.submit(apart, item) for item in items]
        try:
            for one in done:
                yield one.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _share(each: int, all_threads: int) -> Iterator[Callable[[], None]]:
    """What a new thread has to call so that it computes on `each` cores; the caller's own number stays."""
    try:
        yield lambda: torch.set_num_threads(each)
    finally:
        torch.set_num_threads(all_threads)


@contextmanager
def one_thread() -> Iterator[None]:
    """Whatever torch divides among threads may be added up in another order: here it divides nothing."""
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        yield
    finally:
        torch.set_num_threads(threads)
