"""What long work tells whoever watches it. The library yields these and never prints; `cli/show.py` shows them."""

from __future__ import annotations

import logging
from dataclasses import dataclass

FOR_THOSE_WHO_WAIT = logging.INFO - 5
"""The level of a log record for people at a terminal, of no use elsewhere."""


@dataclass(frozen=True)
class Event:
    """Anything worth telling. Training adds its own kinds (nmt/train), so watchers skip what they don't know."""


@dataclass(frozen=True)
class Progress(Event):
    """`done` of `total` (None: unknown) of some `unit`, e.g. ``Progress("preprocess", 2000, 29000, "pairs")``."""

    label: str
    done: int
    total: int | None = None
    unit: str = ""


@dataclass(frozen=True)
class Notice(Event):
    """A plain sentence for the user."""

    text: str


@dataclass(frozen=True)
class Caution(Event):
    """Something the user should know about, because it changes the result: a dropped line, a fallback, a cut."""

    text: str


@dataclass(frozen=True)
class StageFresh(Event):
    """A stage that needn't run: its inputs and its settings are those of last time."""

    stage: str


@dataclass(frozen=True)
class StageStarted(Event):
    """A stage begins, because of `reasons`."""

    stage: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class StageFinished(Event):
    """A stage has written its results to `folder`."""

    stage: str
    seconds: float
    folder: str
