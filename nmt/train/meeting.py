"""How processes that were started together find each other, though an earlier start has left its traces.

torchrun's store outlives a restart and still names the addresses of processes that are gone. So rank 0 chooses a new
name at every start, and each of the others shows it a token under that name, to which rank 0 answers with the same:
who has read an old name gets no answer, and looks again.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from datetime import timedelta

from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from nmt.train.launch import Seat

NAME = "nmt/name"
PAUSE = 0.02  # seconds between looks, so that signals are heeded


def meet(seat: Seat, limit: timedelta) -> Store:
    """A store that the processes of this very start share with nobody. Raises RuntimeError when some don't come."""
    store, _, _ = next(iter(rendezvous(seat.meeting, seat.rank, seat.size, timeout=limit)))
    store.set_timeout(limit)
    name = _invite(store, seat.size, limit) if seat.rank == 0 else _follow(store, seat.rank, limit)
    return PrefixStore(name, store)


def _invite(store: Store, size: int, limit: timedelta) -> str:
    name = f"nmt/{secrets.token_hex(8)}"
    store.set(NAME, name)
    for rank in range(1, size):
        _until(lambda rank=rank: store.check([f"{name}/here/{rank}"]), limit)  # type: ignore[misc]
        store.set(f"{name}/seen/{rank}", store.get(f"{name}/here/{rank}").decode())
    return name


def _follow(store: Store, rank: int, limit: timedelta) -> str:
    token, name = secrets.token_hex(8), ""

    def answered() -> bool:
        nonlocal name
        newest = _read(store, NAME)
        if newest and newest != name:
            name = newest
            store.set(f"{name}/here/{rank}", token)
        return bool(name) and _read(store, f"{name}/seen/{rank}") == token

    _until(answered, limit)
    return name


def _read(store: Store, key: str) -> str:
    return store.get(key).decode() if store.check([key]) else ""


def _until(happened: Callable[[], bool], limit: timedelta) -> None:
    deadline = time.monotonic() + limit.total_seconds()
    while not happened():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not all have come within {limit}")
        time.sleep(PAUSE)
