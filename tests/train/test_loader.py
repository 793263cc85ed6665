"""Reading ahead changes nothing but the time."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from train.toys import SCHEDULE, model, optimizer, pairs, store

from nmt.batches.batch import Batch
from nmt.train.contact import Place
from nmt.train.data import Pairs
from nmt.train.events import Step
from nmt.train.fit import fit
from nmt.train.loader import Loader
from nmt.train.rules import Rules
from nmt.train.state import State


def readers() -> list[threading.Thread]:
    """Threads that read and do not end."""
    found = [thread for thread in threading.enumerate() if thread.name.startswith("load")]
    for thread in found:
        thread.join(10)
    return [thread for thread in found if thread.is_alive()]


def training(data: Pairs, folder: Path | None = None, *, ahead: bool | None, steps: int = 6) -> Any:
    trained = model()
    learner, kept = optimizer(trained), store(folder) if folder else None
    torch.manual_seed(7)
    newest = kept.newest() if kept else None
    state = kept.restore(newest, trained, learner) if kept and newest else State()
    rules = Rules(steps=steps, save_every=4)
    return fit(trained, learner, data, state, schedule=SCHEDULE, rules=rules, store=kept, ahead=ahead)


def losses(events: Any) -> list[float]:
    return [event.loss for event in events if isinstance(event, Step)]


@pytest.mark.parametrize("changes", [{}, {"accumulate": 3, "group": 7}], ids=str)
def test_training_is_the_same_whether_batches_are_read_ahead_or_not(changes: dict[str, int], tmp_path: Path) -> None:
    expected = losses(training(pairs(**changes), ahead=False))
    assert len(expected) == 6
    assert losses(training(pairs(**changes), ahead=True)) == expected
    begun = losses(training(pairs(**changes), tmp_path, ahead=True, steps=4))
    assert begun + losses(training(pairs(**changes), tmp_path, ahead=True)) == expected


class Damaged(Pairs):
    """Of which one batch cannot be read."""

    def load(self, rows: np.ndarray) -> Batch:
        if rows is self.updates(0)[3][0]:
            raise OSError("the disk is gone")
        return super().load(rows)


@pytest.mark.parametrize("ahead", [False, True])
def test_what_goes_wrong_is_raised_at_the_update_it_belongs_to(ahead: bool) -> None:
    good = pairs()
    events = training(
        Damaged(good.source, good.target, good.order, bos=good.bos, eos=good.eos, pad=good.pad), ahead=ahead
    )
    assert [next(events).step for _ in range(3)] == [1, 2, 3]
    with pytest.raises(OSError, match="the disk is gone") as raised:
        next(events)
    assert raised.value.__notes__ == [f"rank 0 of 1, {place(good)}"]
    assert not readers()


def place(data: Pairs) -> str:
    return Place(4, 1, [data.updates(0)[3]]).of(0)


def test_the_thread_ends_by_itself_and_there_is_none_on_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    start = threading.Thread.start

    def noted(self: threading.Thread) -> None:
        begun.append(self.name)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", noted)
    for ahead in (None, True):
        events = training(pairs(), ahead=ahead)
        next(events)
        events.close()
        assert not readers()
        assert any(name.startswith("load") for name in begun) is bool(ahead)


def test_one_update_is_read_ahead_and_no_more_and_none_of_another_group() -> None:
    read: list[int] = []

    def load(rows: np.ndarray) -> Batch:
        read.append(int(rows[0]))
        return pairs().load(rows)

    updates = [[np.array([number])] for number in range(3)]
    loader = Loader(load, lambda update: update, ahead=True)
    for number, expected in enumerate(([0, 1], [0, 1, 2], [0, 1, 2])):
        (batch,) = loader.take(updates, number)
        assert batch.src_BS.equal(pairs().load(np.array([number])).src_BS)
        assert not readers()
        assert read == expected
    loader.take([[np.array([9])]], 0)
    assert read == [0, 1, 2, 9]


def test_an_update_that_was_not_expected_is_read_when_it_is_taken() -> None:
    updates = [[np.array([number])] for number in range(4)]
    loader = Loader(pairs().load, lambda update: update, ahead=True)
    loader.take(updates, 0)
    assert loader.take(updates, 3)[0].src_BS.equal(pairs().load(np.array([3])).src_BS)
