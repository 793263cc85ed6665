"""Processes find those of their own start, whatever an earlier start has left in the store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from nmt.train.launch import Seat
from nmt.train.meeting import meet

LIMIT = timedelta(seconds=20)


def seats(folder: Path, size: int) -> list[Seat]:
    return [Seat(rank, size, meeting=f"file://{folder / 'store'}") for rank in range(size)]


@pytest.mark.parametrize("size", [2, 5])
def test_every_start_has_a_store_of_its_own(size: int, tmp_path: Path) -> None:
    starts = []
    for number in range(3):
        with ThreadPoolExecutor(size) as pool:  # the others come before rank 0, and read the name of the last start
            others = [pool.submit(meet, seat, LIMIT) for seat in seats(tmp_path, size)[1:]]
            stores = [meet(seats(tmp_path, size)[0], LIMIT), *(other.result() for other in others)]
        assert not any(store.check(["here"]) for store in stores)
        stores[number % size].set("here", str(number))
        assert {store.get("here") for store in stores} == {str(number).encode()}
        starts.append(stores)


def test_who_waits_in_vain_is_told(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="not all have come"):
        meet(seats(tmp_path, 2)[1], timedelta(seconds=0.1))
