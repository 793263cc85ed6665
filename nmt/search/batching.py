"""Batches under a token budget, and what becomes of one when some of it is done."""

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


def close_ranks(going_on: Sequence[bool]) -> list[int]:
    """The places of those that go on, in an order in which few move: the last ones fill the holes that others left."""
    count = sum(going_on)
    movers = (place for place in range(len(going_on) - 1, count - 1, -1) if going_on[place])
    return [place if going_on[place] else next(movers) for place in range(count)]
