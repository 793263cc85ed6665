"""What must survive a restart, beside weights, moments and random numbers: one small dataclass of plain numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nmt.checkpoint import layout
from nmt.errors import ModelError
from nmt.files import read_json


@dataclass
class State:
    """Where training stands. A validation counts once; a step is an update taken from the data."""

    step: int = 0
    """Updates taken from the data, skipped ones included."""
    skipped: int = 0
    """Updates that were not finite and changed nothing; the learning rate counts only the others."""
    skipped_in_a_row: int = 0
    epoch: int = 0
    """The current pass over the data, from 0."""
    update: int = 0
    """The next update's place in the epoch."""
    group: int = 0
    """The group of the epoch that it is of."""
    before: int = 0
    """Updates of the epoch's groups before that one."""
    validated: int = 0
    """The last step that was validated."""
    best: float | None = None
    """The best value so far of what the best checkpoint goes by."""
    best_step: int | None = None
    bad_validations: int = 0
    """Validations in a row that were not strictly better."""
    elapsed: float = 0.0
    """Seconds of training, over all restarts."""

    def judge(self, value: float, lower_is_better: bool) -> bool:
        """Take in a validation's value and tell whether it is the best so far: strictly better, and a number."""
        self.validated = self.step
        better = self.best is None or (value < self.best if lower_is_better else value > self.best)
        if not math.isfinite(value) or not better:
            self.bad_validations += 1
            return False
        self.best, self.best_step, self.bad_validations = value, self.step, 0
        return True

    def judge_anew(self, best: tuple[float, int] | None) -> None:
        """Validations are judged by another value from now on, of which `best` is the best so far, with its step."""
        self.best, self.best_step = best or (None, None)
        self.bad_validations = 0

    @property
    def place(self) -> int:
        """The next update's place in its group."""
        return self.update - self.before

    def advance(self, updates_in_group: int, groups: int = 1) -> None:
        """Go on to the next update of the data."""
        self.step += 1
        self.update += 1
        if self.place >= updates_in_group:
            self.group, self.before = self.group + 1, self.update
            if self.group >= groups:
                self.epoch += 1
                self.begin_epoch()

    def begin_epoch(self) -> None:
        """Go to the epoch's first update."""
        self.update = self.group = self.before = 0

    def plain(self) -> dict[str, Any]:
        """For JSON; where an epoch has one group, there is no word of it."""
        return {name: value for name, value in asdict(self).items() if value or name not in ("group", "before")}

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> State:
        """From JSON; keys that are not of the state are left alone."""
        return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})

    def impossible(self) -> str:
        """The first field whose value no training comes to, or "": nothing counted is more than its steps."""
        for name, value in asdict(self).items():
            if name in ("best", "elapsed"):
                possible = type(value) in (int, float) and math.isfinite(value) and (name == "best" or value >= 0)
            else:
                possible = type(value) is int and value >= 0 and (name == "step" or value <= self.step)
            if not possible and not (value is None and name in ("best", "best_step")):
                return name
        return "before" if self.before > self.update else ""


def resumable(checkpoints: Path) -> list[Path]:
    """The checkpoints in a folder that training can go on from, the newest last."""
    return [path for path in layout.step_folders(checkpoints) if (path / layout.RESUME / layout.STATE).is_file()]


def read_record(path: Path) -> dict[str, Any]:
    """state.json of a checkpoint: the state, and the settings it was trained with. Raises ModelError."""
    file = path / layout.RESUME / layout.STATE
    data = read_json(file)
    if not isinstance(data, dict) or not isinstance(data.get("state"), dict):
        raise ModelError(f"{file}: is damaged: it holds no state", f"remove {path} to go on from the one before")
    return data


def read_state(path: Path) -> State:
    """The state of a checkpoint. Raises ModelError for values that it cannot have."""
    state = State.read(read_record(path)["state"])
    wrong = state.impossible() if state.step == layout.step_number(path) else "step"
    if wrong:
        file, value = path / layout.RESUME / layout.STATE, json.dumps(getattr(state, wrong))
        raise ModelError(
            f"{file}: is damaged: {wrong} = {value} cannot be at this step",
            f"remove {path} to go on from the one before",
        )
    return state
