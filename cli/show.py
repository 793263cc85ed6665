"""All that is shown beside results: bars, lines and errors, on stderr only.  Rich is loaded for terminals alone."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from nmt.events import FOR_THOSE_WHO_WAIT
from nmt.wording import agreeing, span

FIRST_LINE, BETWEEN_LINES = 2.0, 10.0  # seconds: plain progress lines come seldom, since they fill log files
ESCAPES = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)], "\N{REPLACEMENT CHARACTER}")  # of a terminal


@dataclass
class _State:
    quiet: bool = False


_state = _State()


def silence(quiet: bool) -> bool:
    """Say nothing but errors from now on (`--quiet`), or speak again."""
    _state.quiet = quiet
    return quiet


def is_quiet() -> bool:
    """Whether nothing but errors is shown."""
    return _state.quiet


def on_terminal() -> bool:
    """Whether stderr is a terminal that bars may be drawn on."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def awaits(path: object) -> None:
    """Tell people at a terminal that their typing is what is read."""
    if str(path) == "-" and sys.stdin is not None and sys.stdin.isatty():
        say("reading from the terminal; Ctrl-D ends")


def say(text: str) -> None:
    """A line on stderr, unless quiet."""
    if not _state.quiet:
        _write(text)


def caution(text: str) -> None:
    """A warning on stderr, unless quiet."""
    say(f"warning: {text}")


def painted(parts: Sequence[tuple[str, str]]) -> str:
    """A line of results: parts marked "-" or "+" in colour where stdout is a terminal, as [-…-] and {+…+} elsewhere."""
    from nmt.score.marked import plain

    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb" or os.environ.get("NO_COLOR"):
        return plain(parts)  # type: ignore[arg-type]
    from rich.console import Console
    from rich.text import Text

    styles = {"-": "red strike", "+": "bold green"}
    text = Text.assemble(*((piece.translate(ESCAPES), styles.get(mark, "")) for piece, mark in parts))
    console = Console(force_terminal=True, color_system="standard", highlight=False)
    with console.capture() as captured:
        console.print(text, soft_wrap=True, end="")
    return captured.get()


def error(problem: str, hint: str = "") -> None:
    """What went wrong and the one thing to do, on stderr, quiet or not. Each problem stands on a line of its own."""
    for line in problem.splitlines() or [""]:
        _write(f"error: {line}")
    if hint:
        _write(f"hint: {' '.join(hint.splitlines())}")


def _write(text: str) -> None:
    """Text on stderr in any locale; control characters of data never reach the terminal."""
    if sys.stderr is None:  # closed by whoever started us
        return
    lines = [line.translate(ESCAPES) for line in text.split("\n")]
    if on_terminal():
        from .screen import folded

        lines = [part for line in lines for part in folded(line, shutil.get_terminal_size().columns)]
    clean = "\n".join(lines)
    encoding = sys.stderr.encoding or "utf-8"
    try:
        sys.stderr.write(clean.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        sys.stderr.flush()
    except OSError:  # nobody reads stderr any more: the results still matter
        pass


def progress(events: Iterable[object], steps: int | None = None, results: object = "") -> None:
    """Run through `events` and show them; `steps` is the number of updates that training aims for.

    `results` is where they are written meanwhile: "-" on a terminal has no bar, in whose place they would stand.
    """
    with _view(bars=str(results) != "-" or sys.stdout is None or not sys.stdout.isatty()) as view:
        for event in events:
            view.show(event, steps)


@contextmanager
def bar(label: str, total: int | None = None, unit: str = "") -> Iterator[Bar]:
    """A bar on a terminal, plain lines otherwise, for commands that count by themselves: ``bar.update(done)``."""
    with _view() as view:
        yield Bar(view, label, total, unit)


class Bar:
    """One counter on the screen."""

    def __init__(self, view: View, label: str, total: int | None, unit: str) -> None:
        self.view, self.label, self.total, self.unit = view, label, total, unit

    def update(self, done: int) -> None:
        """`done` have been done so far."""
        self.view.count(self.label, done, self.total, self.unit)


@contextmanager
def _view(bars: bool = True) -> Iterator[View]:
    if _state.quiet:
        yield View()
    elif not on_terminal():
        yield Lines()
    elif not bars:
        yield Words()
    else:
        from .screen import Screen

        with Screen() as screen:
            yield screen


class View:
    """Shows nothing; the base of what shows something."""

    best = ""  # the best BLEU that validation has given

    def line(self, text: str) -> None:
        """A line that stays."""

    def count(self, label: str, done: int, total: int | None, unit: str, details: Sequence[str] = ()) -> None:
        """A number that moves; `details` stand in the order of their importance."""

    def close(self) -> None:
        """Whatever was counted is done."""

    def show(self, event: Any, steps: int | None) -> None:
        """Any event. Training's kinds are known by name: importing them would load torch only to show a line."""
        match type(event).__name__:
            case "Progress":
                self.count(event.label, event.done, event.total, event.unit)
            case "Notice":
                self.line(event.text)
            case "Caution":
                self.line(f"warning: {event.text}")
            case "StageFresh":
                self.line(f"{event.stage}: nothing to do")
            case "StageStarted":
                self.line(f"running {event.stage}: {'; '.join(event.reasons)}")
            case "StageFinished":
                self.close()
                self.line(f"{event.stage}: done in {span(event.seconds)}, in {event.folder}")
            case "Step":
                total = getattr(event, "total", None) or steps
                self.count("train", event.step, total, "updates", _details(event, self.best))
            case "Skipped":
                self.line(f"warning: train: update {event.step:,} is left out: its loss or gradient is not finite")
            case "Halved":
                self.line(
                    f"warning: train: a batch of {event.tokens:,} tokens does not fit into the memory of rank "
                    f"{event.rank}: such batches are now computed in halves, to the same effect but slower"
                )
            case "Validation":
                if event.best and event.bleu is not None:
                    self.best = f"best BLEU {event.bleu:.2f}"
                self.line(_validation(event))
            case "Saved":
                self.line(f"train: saved {event.path}")
            case "Stopped":
                self.close()
                self.line(f"train: stopped: {event.reason}")
            case _:
                pass


class Words(View):
    """Only what is said."""

    def line(self, text: str) -> None:
        _write(text)


class Lines(Words):
    """Plain lines for logs and pipes: no colors, no carriage returns, and seldom."""

    def __init__(self) -> None:
        self.began: dict[str, tuple[float, int]] = {}
        self.due: dict[str, float] = {}

    def count(self, label: str, done: int, total: int | None, unit: str, details: Sequence[str] = ()) -> None:
        now = time.monotonic()
        if label not in self.began or done < self.began[label][1]:
            self.began[label] = now, done
            self.due[label] = now + FIRST_LINE
        if now < self.due[label]:
            return
        self.due[label] = now + BETWEEN_LINES
        start, first = self.began[label]
        rate = (done - first) / max(now - start, 1e-9)
        told = f"{label}: {done:,}" + (f" of {total:,}" if total else "")
        parts = [f"{told} {agreeing(total or done, unit)}".rstrip(), *details]
        parts.append(f"{per_second(rate)}/s")
        if total and rate > 0 and total >= done:
            parts.append(f"{span((total - done) / rate)} left")
        _write(", ".join(part for part in parts if part))


def _details(event: Any, best: str) -> list[str]:
    rate = getattr(event, "rate", None)
    speed = f"{per_second(rate)} tokens/s" if rate else ""
    parts = f"epoch {event.epoch}", f"loss {event.loss:.3f}", best, speed, f"lr {event.learning_rate:.2e}"
    return [part for part in parts if part]


def _validation(event: Any) -> str:
    parts = [f"loss {event.loss:.3f}"]
    for name, label in (("perplexity", "perplexity"), ("bleu", "BLEU"), ("chrf", "chrF")):
        value = getattr(event, name, None)
        if value is not None:
            parts.append(f"{label} {value:.2f}")
    for name, scores in getattr(event, "sets", {}).items():
        parts.append(f"{name} {' '.join(f'{value:.2f}' for value in scores.values())}")
    if event.best:
        parts.append("the best so far")
    return f"train: update {event.step:,}: validation {', '.join(parts)}"


def per_second(rate: float) -> str:
    """A rate for people: 0.4, 12, 1,002."""
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


class LogLines(logging.Handler):
    """The library's log records as lines on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        caution(text) if record.levelno >= logging.WARNING else say(text)


def listen() -> None:
    """Show what the library logs, from INFO on; on a terminal also what somebody who waits would like to know."""
    logger = logging.getLogger("nmt")
    if not any(isinstance(handler, LogLines) for handler in logger.handlers):
        logger.addHandler(LogLines())
    at_a_terminal = sys.stderr is not None and sys.stderr.isatty()
    logger.setLevel(FOR_THOSE_WHO_WAIT if at_a_terminal else logging.INFO)
    logger.propagate = False
