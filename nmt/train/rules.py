"""The numbers that an update and the loop go by, in plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nmt.train.state import State
from nmt.wording import counted


@dataclass(frozen=True)
class Guide:
    """Which attention to the source alignments guide, from 0, and how much: see nmt.train.guided."""

    weight: float
    layer: int | None = None
    head: int | None = None


@dataclass(frozen=True)
class Rules:
    """How an update is made, when validation and saving are due, when training is over."""

    label_smoothing: float = 0.1
    clip_norm: float | None = None
    precision: Literal["float32", "bfloat16"] = "float32"
    steps: int | None = None
    epochs: int | None = None
    minutes: float | None = None
    patience: int | None = None
    validate_every: int = 1000
    save_every: int = 1000
    best_by: Literal["loss", "bleu", "chrf"] = "bleu"
    max_bad_steps: int = 20
    seed: int = 1
    rdrop_alpha: float | None = None
    guide: Guide | None = None

    def over(self, state: State) -> str | None:
        """Why training is over, or None while it isn't. Counts are totals over all restarts."""
        if self.steps is not None and state.step >= self.steps:
            return _all(self.steps, "step")
        if self.epochs is not None and state.epoch >= self.epochs:
            return _all(self.epochs, "epoch")
        if self.patience is not None and state.bad_validations >= self.patience:
            validations = counted(self.patience, "validation")
            return f"no better {self.best_by} in {validations}; the best was at step {state.best_step}"
        if self.minutes is not None and state.elapsed >= 60 * self.minutes:
            return "1 minute is over" if self.minutes == 1 else f"{self.minutes:g} minutes are over"
        return None


def _all(number: int, unit: str) -> str:
    return f"all {number:,} {unit}s are done" if number > 1 else f"the one {unit} is done"
