"""The batches of one update after another; on a GPU those of the next are read while the present ones are computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from nmt.batches.ahead import Update
from nmt.batches.batch import Batch


class Loader:
    """What `load` makes of the rows that are this process's `share` of an update.

    With `ahead` a thread reads the next update of the same group, and ends. Nothing else depends on it: what is read
    is a function of the rows, and what goes wrong is raised when the update is taken. With `pinned` the batches lie
    where a GPU fetches them from by itself.
    """

    def __init__(
        self,
        load: Callable[[np.ndarray], Batch],
        share: Callable[[Update], Update],
        *,
        ahead: bool = False,
        pinned: bool = False,
    ) -> None:
        self._load, self._share = load, share
        self._ahead, self._pinned = ahead, pinned
        self._coming: tuple[Update, Future[list[Batch]]] | None = None

    def take(self, updates: Sequence[Update], place: int) -> list[Batch]:
        """The batches of the update at this place. Raises what loading them raised."""
        update, (coming, self._coming) = updates[place], (self._coming, None)
        batches = coming[1].result() if coming and coming[0] is update else self._read(update)
        if self._ahead and place + 1 < len(updates):
            following, thread = updates[place + 1], ThreadPoolExecutor(1, thread_name_prefix="load")
            self._coming = following, thread.submit(self._read, following)
            thread.shutdown(wait=False)  # ends by itself when it is done
        return batches

    def _read(self, update: Update) -> list[Batch]:
        batches = [self._load(rows) for rows in self._share(update)]
        return [batch.pinned() for batch in batches] if self._pinned else batches
