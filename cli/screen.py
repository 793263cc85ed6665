"""Live bars on a terminal, each on one line of its window, whose width chooses what there is room for."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, Group
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType
from rich.text import Text

from nmt.wording import agreeing, span

from .show import ESCAPES, View, per_second

SHORTEST_BAR = 4  # columns
CHIEF = 4  # parts that matter more than a long bar: how many are done, the time left, and two details
SETTLED = 0.5  # seconds, before which no rate is told


@dataclass
class Counter:
    """Something that is counted: since when, from where on, and how far."""

    label: str
    began: float
    first: int
    done: int = 0
    total: int | None = None
    unit: str = ""
    details: Sequence[str] = ()

    def parts(self) -> list[str]:
        """What can be told of it, the most important first."""
        passed = time.monotonic() - self.began
        speed = (self.done - self.first) / passed if passed > SETTLED else 0.0
        known = f"{self.done:,}/{self.total:,}" if self.total else f"{self.done:,}"
        ahead = (self.total or 0) - self.done
        left = f"{span(ahead / speed)} left" if speed and ahead > 0 else ""
        rate = f"{per_second(speed)}/s" if speed else ""
        told = [f"{known} {agreeing(self.total or self.done, self.unit)}".rstrip(), left, *self.details, rate]
        return [part for part in told if part]


class Screen(View):
    """Live bars, with rate and time left; lines that stay scroll by above them."""

    def __enter__(self) -> Screen:
        self.console = Console(stderr=True, highlight=False)  # knows NO_COLOR
        self.counters: dict[str, Counter] = {}
        self.drawn: list[int] = []  # how wide the lines were that are on the screen
        self.width = self.console.width
        self.live = Live(
            get_renderable=self._bars,
            console=self.console,
            transient=True,
            refresh_per_second=8,
            redirect_stdout=False,  # results go where they should
        )
        self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def line(self, text: str) -> None:
        lines = folded(text.translate(ESCAPES), self.console.width)
        self.console.print("\n".join(lines), markup=False, soft_wrap=True)

    def count(self, label: str, done: int, total: int | None, unit: str, details: Sequence[str] = ()) -> None:
        new = label not in self.counters
        counter = Counter(label, time.monotonic(), done) if new else self.counters[label]
        counter.done, counter.total, counter.unit, counter.details = done, total, unit, details
        if total is not None and done >= total and not details:
            self.counters = {name: other for name, other in self.counters.items() if name != label}
        elif new:
            self.counters = {**self.counters, label: counter}  # in one piece, for it is read by another thread
            self.live.refresh()

    def close(self) -> None:
        self.counters = {}

    def _bars(self) -> Group:
        """A line for each counter; of one that a narrower window has broken, the rest is removed."""
        width = self.console.width
        if width < self.width:
            broken = sum(max(0, line - 1) // width for line in self.drawn)
            erase = ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2)
            self.console.control(*(Control(*erase, (ControlType.CURSOR_UP, 1), *erase) for _ in range(broken)))
        lines = [drawn(counter, width, self.console) for counter in self.counters.values()]
        self.width, self.drawn = width, [line.cell_len for line in lines]
        return Group(*lines)


def drawn(counter: Counter, width: int, console: Console) -> Text:
    """`counter` on one line of less than `width` columns, the last of which some terminals wrap."""
    text = Text(f"{counter.label} ", no_wrap=True, overflow="crop")
    parts, room = counter.parts(), width - 1 - text.cell_len
    bar = min(width // 8, room - 1 - cell_len(", ".join(parts[:CHIEF]))) if counter.total else 0
    if bar >= SHORTEST_BAR and counter.total:
        full = min(bar, bar * counter.done // counter.total)
        stroke = "-" if console.options.ascii_only else "━"
        plain = console.no_color or console.color_system is None  # which colours alone would tell apart
        text.append(stroke * full, "bar.complete")
        text.append((" " if plain else stroke) * (bar - full) + " ", "bar.back")
    text.append(fitted(parts, width - 1 - text.cell_len))
    return text


def fitted(parts: Sequence[str], width: int) -> str:
    """The first of `parts` that fit into `width` columns, at least one; none is ever cut."""
    line = parts[0]
    for part in parts[1:]:
        longer = f"{line}, {part}"
        if cell_len(longer) > width:
            break
        line = longer
    return line


def folded(line: str, width: int) -> Iterator[str]:
    """`line` in pieces of `width` columns that end between words. Longer words are left to the terminal."""
    start, used = 0, 0
    for word in re.finditer(r"\s*\S+", line):
        columns = cell_len(word[0])
        if used and used + columns > width:
            yield line[start : word.start()]
            start = word.start() + len(word[0]) - len(word[0].lstrip())
            columns, used = cell_len(word[0].lstrip()), 0
        used += columns
    yield line[start:].rstrip() if used else line[start:]
