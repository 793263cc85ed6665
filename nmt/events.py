"""What long work tells whoever watches it. The library yields these and never prints; `cli/show.py` shows them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """`done` of `total` (None: unknown) of some `unit`, e.g. ``Progress("preprocess", 2000, 29000, "pairs")``."""

    label: str
    done: int
    total: int | None = None
    unit: str = ""


@dataclass(frozen=True)
class Notice:
    """A plain sentence for the user."""

    text: str


@dataclass(frozen=True)
class Caution:
    """Something the user should know about, because it changes the result: a dropped line, a fallback, a cut."""

    text: str
