"""Whether the other processes still answer; and when they don't, which of them it is and what it was doing.

A process that ends closes its connections, so the others notice at once. One that hangs is given a limit: gloo then
raises by itself, and where a thread waits in a library that would wait forever, as for a GPU, a watch ends the process.
Whoever notices signs a list that all can read; those who don't sign it are the lost ones.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from threading import Event, Thread

import numpy as np
import torch.distributed as dist
from torch.distributed.distributed_c10d import Store

from nmt.errors import TrainingError
from nmt.train.launch import LOST

SETTLE = 1.0  # seconds in which those who have lost contact sign the list
REACH = 5.0  # seconds in which whoever keeps the list must answer, beyond those
NAMED = 10  # pairs of a batch that are named
HINT = "the message of the one that ended first says why; the same command goes on from the newest checkpoint"

log = logging.getLogger(__name__)


class LostContact(TrainingError):
    """Another process has died, or hangs."""

    status = LOST


@dataclass(frozen=True)
class Place:
    """Which update is computed, and which of its pairs by whom."""

    step: int
    """From 1, as events count."""
    epoch: int
    """From 1."""
    parts: Sequence[Sequence[np.ndarray]] = ()
    """The batches of every rank."""

    def __str__(self) -> str:
        return f"step {self.step} (epoch {self.epoch})"

    def of(self, rank: int) -> str:
        """The place, and the pairs that `rank` has there, by their number from 0."""
        rows = [int(row) for some in self.parts[rank] for row in some] if rank < len(self.parts) else []
        more = ", …" if len(rows) > NAMED else ""
        return f"{self}, in the batch of the pairs {', '.join(map(str, rows[:NAMED]))}{more}" if rows else str(self)


class Contact:
    """One process's contact with the others. `limit` is how long a process that hangs is waited for."""

    def __init__(self, rank: int, size: int, store: Store, limit: timedelta) -> None:
        self.rank, self.size = rank, size
        self.limit = limit
        self.place: Place | None = None
        """What all are computing."""
        self._store = store
        self._since: float | None = None
        self._over = Event()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Around whatever waits for others: turns what torch raises about them into LostContact."""
        outer, self._since = self._since, time.monotonic()
        try:
            yield
        except RuntimeError as error:
            if not _of_others(error):
                raise
            raise self.lost(hung="imed out" in str(error)) from error
        finally:
            self._since = outer

    def watch(self, limit: timedelta, end: Callable[[int], None] = os._exit) -> None:
        """From now on, a wait beyond `limit` that raises nothing ends this process, whatever it waits in."""

        def look() -> None:
            while not self._over.wait(min(1.0, limit.total_seconds() / 10)):
                since = self._since
                if since is not None and time.monotonic() - since > limit.total_seconds():
                    log.critical("error: %s", self.lost(hung=True).problem)
                    end(LOST)

        Thread(target=look, daemon=True).start()

    def close(self) -> None:
        """Nobody is waited for any more."""
        self._over.set()

    def lost(self, hung: bool) -> LostContact:
        """The error that names those who have not noticed, by themselves, that contact is lost."""
        silent, hung = self._silent(hung)
        at = f" at {self.place}" if self.place else ""
        if not silent:
            problem = f"rank {self.rank} of {self.size} has lost contact with the other processes{at}"
        elif len(silent) > 1:
            names = ", ".join(map(str, silent))
            problem = f"the ranks {names} of {self.size} {'do not answer' if hung else 'have ended'}{at}"
        else:
            at = f" at {self.place.of(silent[0])}" if self.place else ""
            what = f"has not answered for {_span(self.limit)}: it hangs" if hung else "has ended"
            problem = f"rank {silent[0]} of {self.size} {what}{at}"
        return LostContact(problem, HINT)

    def _silent(self, hung: bool) -> tuple[list[int], bool]:
        """Those who haven't signed, and whether anybody has waited for them in vain.

        Nobody where the list cannot be read: it is kept by one of the lost, which may have closed the connection, or be
        on a machine that is cut off or stands still. Then torch waits without limit, so it does that in a thread.
        """
        answers: list[tuple[list[int], bool]] = []

        def ask() -> None:
            with suppress(RuntimeError):
                answers.append(self._signed(hung))

        asking = Thread(target=ask, daemon=True)
        asking.start()
        asking.join(SETTLE + REACH)
        return answers[0] if answers else ([], hung)

    def _signed(self, hung: bool) -> tuple[list[int], bool]:
        """Sign the list and read it. Raises RuntimeError where its keeper has closed the connection."""
        others = [rank for rank in range(self.size) if rank != self.rank]
        deadline = time.monotonic() + SETTLE
        self._store.set(f"lost/{self.rank}", "hung" if hung else "ended")
        while not self._store.check([f"lost/{rank}" for rank in others]) and time.monotonic() < deadline:
            time.sleep(SETTLE / 50)
        signed = [rank for rank in others if self._store.check([f"lost/{rank}"])]
        hung = hung or any(self._store.get(f"lost/{rank}") == b"hung" for rank in signed)
        return [rank for rank in others if rank not in signed], hung


def _span(limit: timedelta) -> str:
    seconds = limit.total_seconds()
    return f"{seconds / 60:g} minutes" if seconds >= 60 else f"{seconds:g} seconds"


def _of_others(error: RuntimeError) -> bool:
    return isinstance(error, dist.DistError) or "gloo" in str(error) or "NCCL" in str(error)
