"""Batches under a token budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def batches(items: Sequence[T], size: Callable[[T], int], budget: int, widest: int) -> Iterator[Sequence[T]]:
    """Runs of `items`, which come longest first: rows × longest is at most `budget`, and rows at most `widest`.

    An item that is over the budget by itself makes a batch of its own.
    """
    start = 0
    while start < len(items):
        rows = max(min(budget // max(size(items[start]), 1), widest), 1)
        yield items[start : start + rows]
        start += rows
