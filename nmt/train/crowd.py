"""Whether training gets the processors that its threads could use, or other programs have them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from nmt.wording import counted

SKIPPED, UPDATES, SECONDS = 2, 20, 5.0
"""Updates that are left aside, since much is done in them for the first time; how many are looked at, and how long."""
CLEARLY = 0.6
"""Threads wait for each other now and then; a share below this has another cause."""


def told_of_share(seconds: float, used: float, threads: int) -> str:
    """What to tell of a process whose `threads` got `used` seconds of processors in so many `seconds`; "" if enough."""
    share = used / max(seconds * threads, 1e-9)
    if share >= CLEARLY:
        return ""
    if threads == 1:
        return f"training gets {share:.0%} of the processor time that its thread could use: other programs use it"
    many = f"training gets {share:.0%} of the processor time that its {counted(threads, 'thread')} could use"
    return f"{many}: other programs use it, or batches are too small for so many threads"


def usable(threads: int) -> int:
    """How many of so many threads can compute at once on the processors that this process may use."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or threads)
    return max(min(threads, len(allowed)), 1)


class Crowd:
    """Looks at the first updates, and tells once."""

    def __init__(
        self,
        threads: int,
        clock: Callable[[], float] = time.monotonic,
        used: Callable[[], float] = time.process_time,
    ) -> None:
        self.threads, self.clock, self.used = threads, clock, used
        self.updates, self.done = 0, False
        self._last, self._sums = (0.0, 0.0), (0.0, 0.0)

    def pass_over(self) -> None:
        """What was done since the last update, such as validation or saving, is not looked at."""
        self._last = self.clock(), self.used()

    def after_update(self) -> str:
        """What to tell now, if anything."""
        if self.done:
            return ""
        self.updates += 1
        now = self.clock(), self.used()
        if self.updates > SKIPPED:
            self._sums = self._sums[0] + now[0] - self._last[0], self._sums[1] + now[1] - self._last[1]
        self._last = now
        seconds, used = self._sums
        if self.updates < SKIPPED + UPDATES or seconds < SECONDS:
            return ""
        self.done = True
        return told_of_share(seconds, used, self.threads)
