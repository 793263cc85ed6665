"""The moving average is the recursion that it says, and what a checkpoint holds."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.testing import assert_close
from train.toys import SCHEDULE, description, model, optimizer, pairs, steps_of

from nmt.checkpoint.average import average
from nmt.checkpoint.layout import step_name
from nmt.checkpoint.tensors import read_tensors, weights
from nmt.errors import ModelError
from nmt.train.ema import Ema
from nmt.train.events import Skipped, Step
from nmt.train.fit import fit
from nmt.train.rules import Rules
from nmt.train.state import State
from nmt.train.store import Store

DECAY = 0.6


def copies(of: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in of.items()}


def train(folder: Path, stop_after: int | None = None, decay: float | None = DECAY, steps: int = 12) -> list[object]:
    """Train in `folder`, going on from what is there."""
    trained = model()
    ema = Ema(trained, decay) if decay else None
    learner = optimizer(trained)
    kept = Store(folder, description(), {}, every=4, keep=99, ema=ema)
    torch.manual_seed(77)
    newest = kept.newest()
    state = kept.restore(newest, trained, learner) if newest else State()
    stop = lambda: "enough" if stop_after is not None and state.step >= stop_after else None  # noqa: E731
    rules = Rules(steps=steps, save_every=4)
    given = {"schedule": SCHEDULE, "rules": rules, "store": kept, "should_stop": stop, "ema": ema}
    return list(fit(trained, learner, pairs(), state, **given))


def saved(folder: Path, step: int, file: str = "model.safetensors") -> dict[str, torch.Tensor]:
    return read_tensors(folder / step_name(step) / file)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*.safetensors"))}


def test_the_average_is_the_recursion_with_a_decay_that_warms_up() -> None:
    trained = model().double()
    learner, ema = optimizer(trained), Ema(trained, DECAY)
    mean, number = copies(weights(trained)), 0
    for event in fit(trained, learner, pairs(), State(), schedule=SCHEDULE, rules=Rules(steps=12), ema=ema):
        if isinstance(event, Step):
            number += 1
            decay = min(DECAY, (1 + number) / (10 + number))
            mean = {name: decay * mean[name] + (1 - decay) * weight for name, weight in weights(trained).items()}
            assert_close(ema.weights(), mean, rtol=1e-12, atol=1e-12)
    assert (1 + 3) / (10 + 3) < DECAY < (1 + 13) / (10 + 13), "both sides of the minimum were tried"


def test_an_update_that_is_skipped_does_not_move_the_average() -> None:
    trained = model()
    calls = iter(range(99))

    def forward(src_BS, keep_BS, tgt_BT):
        x_BTD = type(trained).forward(trained, src_BS, keep_BS, tgt_BT)
        return x_BTD * float("inf") if next(calls) == 3 else x_BTD

    trained.forward = forward
    ema, before = Ema(trained, DECAY), {}
    for event in fit(trained, optimizer(trained), pairs(), State(), schedule=SCHEDULE, rules=Rules(steps=6), ema=ema):
        if isinstance(event, Skipped):
            assert_close(ema.weights(), before, rtol=0, atol=0)
        before = copies(ema.weights())


def test_shown_weights_are_taken_back_bit_for_bit_also_after_an_error() -> None:
    trained = model()
    ema = Ema(trained, DECAY)
    with torch.no_grad():
        for parameter in trained.parameters():
            parameter.add_(torch.randn_like(parameter))
    own, mean = copies(weights(trained)), copies(ema.weights())
    with pytest.raises(KeyboardInterrupt), ema.shown():
        assert_close(weights(trained), mean, rtol=0, atol=0)
        raise KeyboardInterrupt
    assert_close(weights(trained), own, rtol=0, atol=0)
    assert_close(ema.weights(), mean, rtol=0, atol=0)
    assert trained.output_weight_VD is trained.encoder.embedding.weight


def test_the_average_never_touches_the_training(tmp_path: Path) -> None:
    with_it, without = train(tmp_path / "with"), train(tmp_path / "without", decay=None)
    losses = [[event.loss for event in events if isinstance(event, Step)] for events in (with_it, without)]
    assert losses[0] == losses[1]
    trained, plain = saved(tmp_path / "with", 12, "resume/trained.safetensors"), saved(tmp_path / "without", 12)
    assert_close(trained, plain, rtol=0, atol=0)
    assert not (tmp_path / "without" / step_name(12) / "resume" / "trained.safetensors").exists()


@pytest.mark.parametrize("stop", [1, 4, 7])
def test_a_training_stopped_anywhere_ends_with_the_same_averages(stop: int, tmp_path: Path) -> None:
    train(tmp_path / "whole")
    train(tmp_path / "parts", stop_after=stop)
    train(tmp_path / "parts")
    both = contents(tmp_path / "whole"), contents(tmp_path / "parts")
    assert {name: data for name, data in both[1].items() if name in both[0]} == both[0]


def test_an_average_may_begin_and_end_while_a_model_learns(tmp_path: Path) -> None:
    train(tmp_path / "plain", decay=None)
    for number, decay in enumerate((None, DECAY, None), 1):
        train(tmp_path / "mixed", decay=decay, steps=4 * number)
    assert_close(saved(tmp_path / "mixed", 12), saved(tmp_path / "plain", 12), rtol=0, atol=0)
    assert steps_of(tmp_path / "mixed") == [4, 8, 12]
    changed = [
        name
        for name, mean in saved(tmp_path / "mixed", 8).items()
        if not torch.equal(mean, saved(tmp_path / "plain", 8)[name])
    ]
    assert changed


def test_averaging_takes_the_saved_or_the_trained_weights(tmp_path: Path) -> None:
    train(tmp_path / "with")
    train(tmp_path / "without", decay=None)
    folders = {name: [tmp_path / name / step_name(step) for step in (8, 12)] for name in ("with", "without")}
    assert_close(average(folders["with"], trained=True), average(folders["without"]), rtol=0, atol=0)
    mean = {name: (one + saved(tmp_path / "with", 12)[name]) / 2 for name, one in saved(tmp_path / "with", 8).items()}
    assert_close(average(folders["with"]), mean)
    (folders["with"][0] / "resume").rename(tmp_path / "gone")
    with pytest.raises(ModelError, match="lacks resume/"):
        average(folders["with"], trained=True)
