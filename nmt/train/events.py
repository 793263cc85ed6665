"""What training tells whoever watches it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nmt.events import Event


@dataclass(frozen=True)
class Step(Event):
    """One update. Losses are natural logarithms a target token."""

    step: int
    """Updates taken from the data so far, this one included."""
    epoch: int
    """From 1."""
    loss: float
    """Against smoothed labels: what is minimised."""
    tokens: int
    """Target tokens, end marks included."""
    rate: float
    """Target tokens a second."""
    learning_rate: float
    norm: float
    """L2 norm of the gradient before clipping."""
    nll: float = 0.0
    """−log p of the true tokens."""
    total: int | None = None
    """The step at which training ends, where a number of steps ends it."""


@dataclass(frozen=True)
class Skipped(Event):
    """An update whose loss or gradient was not finite: it changed nothing."""

    step: int
    epoch: int
    update: int
    """Its place in the epoch, from 0."""
    in_a_row: int
    rows: tuple[int, ...]
    """The training pairs of the update, by line from 0; at most the first hundred."""


@dataclass(frozen=True)
class Halved(Event):
    """A batch did not fit into memory: it, and any as large from now on, is computed in halves, to the same effect."""

    step: int
    rank: int
    """The process whose memory it was."""
    tokens: int
    """The batch's tokens on its longer side, padding counted."""


@dataclass(frozen=True)
class Validation(Event):
    """What the model does on held-out pairs; `best` tells whether it is the best so far."""

    step: int
    loss: float
    """−log p a target token, unsmoothed."""
    perplexity: float
    bleu: float | None
    chrf: float | None
    best: bool
    sets: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Where there are several validation sets, the scores of each; BLEU and chrF are then their means."""


@dataclass(frozen=True)
class Saved(Event):
    """A checkpoint stands whole on disk."""

    path: Path
    step: int


@dataclass(frozen=True)
class Stopped(Event):
    """Training is over, or was asked to end; the last update is saved."""

    reason: str
    step: int = 0
    interrupted: bool = False
    """Whether somebody asked, so that the same command would go on."""
