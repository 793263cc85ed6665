"""TensorBoard reads what the journal says, each update and each validation once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nmt.errors import TrainingError
from nmt.train.board import Board, check_tensorboard


def step(number: int, loss: float | None) -> dict[str, Any]:
    numbers = {"loss": loss, "nll": 1.5, "rate": 100.0, "learning_rate": 0.25, "norm": 2.0}
    return {"time": "2026-01-02T03:04:05.000+00:00", "event": "step", "step": number, "tokens": 9, **numbers}


def validation(number: int, bleu: float) -> dict[str, Any]:
    entry = {"time": "2026-01-02T03:04:06.000+00:00", "event": "validation", "step": number, "best": True}
    return {**entry, "loss": 1.0, "perplexity": 2.5, "bleu": bleu, "chrf": None, "sets": {"news": {"bleu": 7.0}}}


def points(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard's own reader finds."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator").EventAccumulator
    events = accumulator(str(folder)).Reload()
    return {tag: [(one.step, one.value) for one in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def test_updates_that_are_made_again_are_points_once(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    first = Board(tmp_path, 0, 0)
    for entry in (step(10, 9.0), step(20, 8.0), validation(20, 3.0), step(30, 7.0)):
        first.write(entry)
    first.close()
    again = Board(tmp_path, 20, 10)  # saved after update 20, whose validation was not yet noted
    for entry in (validation(20, 4.0), step(30, 6.0), step(40, None), {"event": "stopped", "step": 40}):
        again.write(entry)
    again.close()
    train, held = points(tmp_path / "train"), points(tmp_path / "validation")
    assert train["loss"] == [(10, 9.0), (20, 8.0), (30, 6.0)]
    assert [number for number, _ in train["nll"]] == [10, 20, 30, 40]
    assert set(train) == {"loss", "nll", "rate", "learning_rate", "norm"}
    assert held == {"loss": [(20, 1.0)], "perplexity": [(20, 2.5)], "bleu": [(20, 4.0)], "bleu/news": [(20, 7.0)]}


def test_without_the_package_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(TrainingError, match="train.tensorboard = true") as problem:
        check_tensorboard()
    assert problem.value.hint == 'pip install "nmt[tensorboard]"'
