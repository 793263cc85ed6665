"""Stopped and gone on is never stopped, bit for bit."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from model.cases import members
from train.toys import SCHEDULE, model, optimizer, pairs, steps_of, store

from nmt.errors import ModelError
from nmt.recipe import is_default
from nmt.train.config import OptimizerConfig, SgdConfig
from nmt.train.events import Saved, Step, Stopped
from nmt.train.fit import fit
from nmt.train.resume import told_changes
from nmt.train.rules import Rules
from nmt.train.state import State
from nmt.train.validate import Scores, evaluating, mean_loss


def train(
    folder: Path,
    stop_after: int | None = None,
    keep: int = 5,
    optimize: Any = optimizer,
    data: Mapping[str, int] = MappingProxyType({}),
    **rules: object,
) -> list[object]:
    """Train in `folder` as one process would, going on from what is there; a signal comes after `stop_after`."""
    trained = model()
    settings = Rules(**{"steps": 20, "save_every": 7, "validate_every": 4, **rules})
    learner, kept, held_out = optimize(trained), store(folder, keep, settings.save_every), pairs(6, seed=9)
    torch.manual_seed(77)
    kept.recover()
    newest = kept.newest()
    state = kept.restore(newest, trained, learner) if newest else State()

    def evaluate() -> Scores:
        with evaluating(trained):
            torch.rand(3)
            loss = mean_loss(trained, held_out)
        return Scores(loss, 0.0, bleu=-loss)

    events: list[object] = []
    for event in fit(
        trained,
        learner,
        pairs(**data),
        state,
        schedule=SCHEDULE,
        rules=settings,
        evaluate=evaluate,
        store=kept,
        should_stop=lambda: "enough" if stop_after is not None and state.step >= stop_after else None,
    ):
        events.append(event)
    return events


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*.safetensors"))}


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> tuple[Path, list[object]]:
    folder = tmp_path_factory.mktemp("unbroken")
    return folder, train(folder)


def test_an_epoch_ends_inside_the_training() -> None:
    assert 3 < len(pairs().updates(0)) < 17


@pytest.mark.parametrize("stop", [1, 3, 4, *range(5, 11), 14, 19, 20])
def test_a_training_stopped_anywhere_ends_with_the_same_bits(stop: int, unbroken, tmp_path: Path) -> None:
    folder, events = unbroken
    first = train(tmp_path, stop_after=stop)
    assert isinstance(first[-1], Stopped) and first[-1].step == stop
    assert steps_of(tmp_path)[-1] == stop
    second = train(tmp_path)
    assert isinstance(second[-1], Stopped) and not second[-1].interrupted
    assert contents(tmp_path) == contents(folder)
    both = [event for event in first + second if isinstance(event, Step)]
    whole = [event for event in events if isinstance(event, Step)]
    assert [(e.step, e.epoch, e.loss, e.norm, e.learning_rate) for e in both] == [
        (e.step, e.epoch, e.loss, e.norm, e.learning_rate) for e in whole
    ]


GROUPS = {"group": 7}


@pytest.fixture(scope="module")
def unbroken_groups(tmp_path_factory) -> tuple[Path, list[object]]:
    folder = tmp_path_factory.mktemp("groups")
    return folder, train(folder, data=GROUPS)


def test_groups_of_an_epoch_begin_and_end_inside_the_training(unbroken_groups) -> None:
    data = pairs(**GROUPS)
    counts = [[len(data.updates(epoch, group)) for group in range(data.groups)] for epoch in (0, 1)]
    assert data.groups == 4 and all(count > 1 for epoch in counts for count in epoch) and sum(counts[0]) < 17
    epochs = [event.epoch for event in unbroken_groups[1] if isinstance(event, Step)]
    assert epochs.count(1) == sum(counts[0])


@pytest.mark.parametrize("stop", [1, 2, 3, 4, 6, 8, 11, 14, 17, 19])
def test_a_training_stopped_in_any_group_ends_with_the_same_bits(stop: int, unbroken_groups, tmp_path: Path) -> None:
    folder, events = unbroken_groups
    first = train(tmp_path, stop_after=stop, data=GROUPS)
    second = train(tmp_path, data=GROUPS)
    assert contents(tmp_path) == contents(folder)
    both, whole = ([event for event in some if isinstance(event, Step)] for some in (first + second, events))
    assert [(e.step, e.epoch, e.loss) for e in both] == [(e.step, e.epoch, e.loss) for e in whole]


def test_pairs_planned_in_groups_for_the_first_time_begin_their_epoch_anew() -> None:
    old = {"told": {"train": {"steps": 5}}}
    changes, reordered = told_changes(old, {"told": {"groups": 3, "train": {"steps": 5}}}, partial(is_default, None))
    assert reordered and changes == ["groups null → 3"]
    state = State(step=12, epoch=1, update=5)
    state.begin_epoch()
    assert state == State(step=12, epoch=1)


def test_a_state_without_groups_is_written_as_ever() -> None:
    assert "group" not in State(step=3, update=3).plain() and "before" not in State(step=3, update=3).plain()
    later = State(step=9, update=9, group=2, before=7)
    assert State.read(later.plain()) == later and later.place == 2


@pytest.mark.parametrize("config", [kind() for kind in members(OptimizerConfig)] + [SgdConfig(momentum=0.9)], ids=str)
def test_ten_updates_and_ten_more_are_twenty_with_every_optimizer(config: OptimizerConfig, tmp_path: Path) -> None:
    for name, stop in (("whole", None), ("halves", 10), ("halves", None)):
        train(tmp_path / name, stop, optimize=config.build)
    assert contents(tmp_path / "halves") == contents(tmp_path / "whole")


def test_a_training_killed_before_its_first_checkpoint_begins_anew(unbroken, tmp_path: Path) -> None:
    trained = model()
    torch.manual_seed(77)
    loop = fit(
        trained, optimizer(trained), pairs(), State(), schedule=SCHEDULE, rules=Rules(steps=20), store=store(tmp_path)
    )
    for _ in range(3):
        next(loop)
    loop.close()
    assert steps_of(tmp_path) == []
    train(tmp_path)
    assert contents(tmp_path) == contents(unbroken[0])


def test_stopping_after_every_single_update_changes_nothing(unbroken, tmp_path: Path) -> None:
    for stop in range(1, 21):
        train(tmp_path, stop_after=stop)
    train(tmp_path)
    assert contents(tmp_path) == contents(unbroken[0])


def test_a_finished_training_does_nothing_more_until_it_may_go_on(unbroken, tmp_path: Path) -> None:
    train(tmp_path, steps=10)
    before = contents(tmp_path)
    assert [type(event) for event in train(tmp_path, steps=10)] == [Stopped]
    assert contents(tmp_path) == before
    train(tmp_path, steps=20)
    newest = "step-00000020/model.safetensors"
    assert contents(tmp_path)[newest] == contents(unbroken[0])[newest]


def test_saved_checkpoints_are_told_and_there(unbroken) -> None:
    folder, events = unbroken
    saved = [event.step for event in events if isinstance(event, Saved)]
    assert {7, 14, 20} <= set(saved)
    assert set(steps_of(folder)) <= set(saved)


def test_another_interval_of_saving_keeps_the_checkpoints_of_the_old_one(tmp_path: Path) -> None:
    train(tmp_path, steps=12, save_every=4, validate_every=99)
    train(tmp_path, steps=20, save_every=5, validate_every=99)
    assert {4, 8, 12, 15, 20} <= set(steps_of(tmp_path))


FILES = ("model.safetensors", "resume/optimizer.safetensors", "resume/rng.safetensors")


@settings(max_examples=20)
@given(st.sampled_from(FILES), st.floats(0, 1, exclude_max=True), st.integers(1, 255))
def test_one_changed_byte_of_a_checkpoint_is_refused_before_anything_is_taken_from_it(
    unbroken, file: str, place: float, change: int
) -> None:
    trained, kept = model(seed=5), store(unbroken[0])
    newest, learner, before = kept.newest(), optimizer(trained), torch.get_rng_state()
    assert newest is not None
    whole = (newest / file).read_bytes()
    damaged = bytearray(whole)
    damaged[int(place * len(whole))] ^= change
    (newest / file).write_bytes(damaged)
    try:
        with pytest.raises(ModelError, match=f"{newest / file}: is damaged") as problem:
            kept.restore(newest, trained, learner)
    finally:
        (newest / file).write_bytes(whole)
    assert str(newest) in problem.value.hint and "the one before" in problem.value.hint
    assert all(torch.equal(a, b) for a, b in zip(trained.parameters(), model(seed=5).parameters(), strict=True))
    assert not learner.state and torch.equal(torch.get_rng_state(), before)


def test_once_a_checkpoint_that_lacks_a_file_is_removed_training_goes_on_from_the_one_before(tmp_path: Path) -> None:
    train(tmp_path, stop_after=8)
    kept = store(tmp_path)
    newest = kept.newest()
    assert newest is not None and newest.name == "step-00000008"
    (newest / FILES[1]).unlink()
    with pytest.raises(ModelError, match=f"{newest / FILES[1]}: is missing"):
        train(tmp_path)
    shutil.rmtree(newest)
    before = kept.newest()
    assert before is not None and before.name == "step-00000007"
    (before / "resume" / "digests.json").unlink()  # as checkpoints were before there were any
    trained = model()
    assert kept.restore(before, trained, optimizer(trained)).step == 7
