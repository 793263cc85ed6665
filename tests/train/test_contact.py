"""A process that waits beyond the limit ends, whatever it waits in."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta

import numpy as np
import pytest
from torch.distributed import HashStore

from nmt.train.contact import Contact, LostContact, Place
from nmt.train.launch import LOST

WAITING = """
import os, sys, time
from datetime import timedelta
from torch.distributed import HashStore
from nmt.train.contact import Contact

contact = Contact(0, 2, HashStore(), timedelta(seconds=0.3))
contact.watch(timedelta(seconds=0.3))
with contact():
    os.read(0, 1)
"""


def contacts(size: int, store: HashStore) -> list[Contact]:
    return [Contact(rank, size, store, timedelta(minutes=10)) for rank in range(size)]


def test_a_wait_without_end_in_a_library_ends_the_process_within_the_limit_with_a_message() -> None:
    silence, _open = os.pipe()
    ended = subprocess.run([sys.executable, "-c", WAITING], stdin=silence, capture_output=True, text=True, timeout=60)
    assert ended.returncode == LOST
    assert ended.stderr == "error: rank 1 of 2 has not answered for 0.3 seconds: it hangs\n"
    for end in (silence, _open):
        os.close(end)


def test_what_takes_long_outside_of_a_wait_is_nobody_s_business() -> None:
    ends: list[int] = []
    contact = contacts(2, HashStore())[0]
    contact.watch(timedelta(seconds=0.01), ends.append)
    with contact():
        pass
    contact.close()
    assert not ends


def test_errors_of_other_kinds_pass() -> None:
    contact = contacts(2, HashStore())[0]
    for error in (RuntimeError("shapes differ"), ValueError("gloo")):
        with pytest.raises(type(error), match=str(error)), contact():
            raise error


def test_those_who_noticed_are_not_the_lost_ones() -> None:
    store = HashStore()
    first, *_ = contacts(4, store)
    first.place = Place(3, 1, [[np.arange(3)], [np.array([7])], [np.arange(30, 50)], []])
    store.set("lost/1", "ended")
    store.set("lost/3", "ended")
    with (
        pytest.raises(
            LostContact, match=r"^rank 2 of 4 has ended at step 3 \(epoch 1\), in the batch of the pairs 30,"
        ),
        first(),
    ):
        raise RuntimeError("[../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer")


def test_one_that_waited_in_vain_tells_the_others_that_it_was_a_hang() -> None:
    store = HashStore()
    first, *_ = contacts(3, store)
    store.set("lost/1", "hung")
    assert str(first.lost(hung=False)) == "rank 2 of 3 has not answered for 10 minutes: it hangs"
    assert str(contacts(4, store)[0].lost(hung=False)) == "the ranks 2, 3 of 4 do not answer"


def test_all_who_are_cut_off_from_each_other_name_nobody() -> None:
    store = HashStore()
    for rank in range(3):
        store.set(f"lost/{rank}", "ended")
    assert str(contacts(3, store)[1].lost(hung=False)) == "rank 1 of 3 has lost contact with the other processes"


class Unreachable(HashStore):
    """A list whose keeper neither answers nor closes the connection."""

    def check(self, keys: list[str]) -> bool:
        os.read(SILENCE[0], 1)
        return False


SILENCE = os.pipe()


def test_where_nobody_answers_for_the_list_a_process_ends_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.train.contact.SETTLE", 0.01)
    monkeypatch.setattr("nmt.train.contact.REACH", 0.05)
    cut_off = Contact(1, 2, Unreachable(), timedelta(seconds=3))
    assert str(cut_off.lost(hung=True)) == "rank 1 of 2 has lost contact with the other processes"
