"""The updates of an epoch's groups, of which the next is planned in a thread while the present one is used."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

Update = list[np.ndarray]
Place = tuple[int, int]
"""An epoch and a group of it."""


class Ahead:
    """What `make` plans for places that are asked for one after the other; `following` tells which comes next.

    Never more than two are kept: the one asked for last, and the next.
    """

    def __init__(self, make: Callable[[int, int], list[Update]], following: Callable[[Place], Place | None]) -> None:
        self._make = make
        self._following = following
        self._planned: dict[Place, Future[list[Update]]] = {}

    def take(self, place: Place) -> list[Update]:
        """The updates of this place. Raises what planning them raised."""
        following = self._following(place)
        self._planned = {key: made for key, made in self._planned.items() if key in (place, following)}
        if place not in self._planned:
            self._planned[place] = Future()
            self._planned[place].set_result(self._make(*place))
        updates = self._planned[place].result()
        if following is not None and following not in self._planned:
            thread = ThreadPoolExecutor(1, thread_name_prefix="plan")
            self._planned[following] = thread.submit(self._make, *following)
            thread.shutdown(wait=False)  # ends by itself when it is done
        return updates
