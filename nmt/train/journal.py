"""journal.jsonl: every event of training, one JSON object a line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import NoneType
from typing import Any

from nmt.errors import OutputError
from nmt.events import Event
from nmt.files import write_text_whole
from nmt.train.events import Step

STEPS_A_LINE = 10
NAMES = ("step", "skipped", "halved", "validation", "saved", "stopped")
COUNTS = ("step", "steps", "epoch", "tokens")
NUMBERS = ("loss", "nll", "rate", "learning_rate", "norm", "perplexity", "bleu", "chrf")


class Journal:
    """Appends events. Steps are summed up, `steps_a_line` to a line; all others end the sum, so nothing is lost."""

    def __init__(self, path: Path, steps_a_line: int = STEPS_A_LINE) -> None:
        self.path = path
        self.steps_a_line = steps_a_line
        self._steps: list[Step] = []

    def write(self, event: Event) -> list[dict[str, Any]]:
        """Take in an event, in the order in which they happen; the entries written for it. Raises OutputError."""
        if type(event).__name__.lower() not in NAMES:
            return []
        if isinstance(event, Step):
            self._steps.append(event)
            return self.flush() if event.step % self.steps_a_line == 0 else []
        waiting = self.flush()
        told = {name: value for name, value in asdict(event).items() if value != {}}
        return [*waiting, self._append({"event": type(event).__name__.lower(), **told})]

    def flush(self) -> list[dict[str, Any]]:
        """Write the steps that wait for their line to be full. Returns their entry, if there is one."""
        if not self._steps:
            return []
        entry = self._append({"event": "step", **summed(self._steps)})
        self._steps = []
        return [entry]

    def rewind(self, step: int, validated: int) -> int:
        """Take out what was written of updates after `step` and of validations after `validated`: they are made again.

        Lines that were cut off, or cannot be of training, go too; what isn't of training stays. Returns how many went.
        Raises OutputError.
        """
        if not self.path.exists():
            return 0
        with self._errors("read"):
            *lines, rest = self.path.read_bytes().decode("utf-8", "replace").split("\n")
        kept = [line for line in lines if _stays(line, step, validated)]
        gone = len(lines) - len(kept) + bool(rest)
        if gone:
            write_text_whole(self.path, "".join(line + "\n" for line in kept))
        return gone

    def _append(self, data: dict[str, Any]) -> dict[str, Any]:
        entry = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **_plain(data)}
        with self._errors("written"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8", newline="\n") as stream:
                stream.write(json.dumps(entry) + "\n")
        return entry

    @contextmanager
    def _errors(self, done: str) -> Iterator[None]:
        """Turns the system's refusals into OutputError."""
        try:
            yield
        except OSError as error:
            hint = "it must be a file that may be read and written, on a disk with room; move away what is there"
            raise OutputError(f"{self.path}: cannot be {done}: {error.strerror}", hint) from error


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a journal, oldest first; a line that was cut off, or is none of training's, is passed over."""
    for line in path.read_bytes().split(b"\n"):
        try:
            data = json.loads(line)
        except ValueError:
            continue
        if isinstance(data, dict) and _measured(data):
            yield data


def _measured(entry: Mapping[str, Any]) -> bool:
    """Whether whoever reads the entry finds numbers, or nothing, where training writes them."""
    whole = (entry.get(name) for name in COUNTS)
    return all(type(value) in (int, NoneType) for value in whole) and all(
        isinstance(entry.get(name), int | float | None) for name in NUMBERS
    )


def made_once(entries: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The steps and validations of `entries`, in order, as they were made last.

    Training that goes on takes out of its journal what it makes again. Where an attempt couldn't, as in journals that
    were put together, later updates and validations stand for earlier ones of the same number, and of later numbers.
    """
    kept: list[Mapping[str, Any]] = []
    for entry in entries:
        if entry.get("event") not in ("step", "validation") or not entry.get("step"):
            continue
        updates = entry["event"] == "step"
        first = entry["step"] - (entry.get("steps") or 1) + 1 if updates else entry["step"]
        end = len(kept)
        while end and kept[end - 1]["step"] >= first:
            end -= 1
        kept[end:] = [] if updates else [one for one in kept[end:] if one["event"] == "step"]
        kept.append(entry)
    return kept


def joined(entries: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """`entries` with one step entry for every `STEPS_A_LINE` updates, where an event or a restart has parted them.

    A mean of few updates jumps about among means of ten.
    """
    kept: list[Mapping[str, Any]] = []
    last = -1  # where the last step entry stands
    for entry in entries:
        if entry.get("event") != "step":
            kept.append(entry)
            continue
        if last >= 0 and _line_of(kept[last]) == _line_of(entry) and kept[last].get("tokens") and entry.get("tokens"):
            entry = {**entry, **_mean(kept.pop(last), entry)}
        last = len(kept)
        kept.append(entry)
    return kept


def _line_of(entry: Mapping[str, Any]) -> int:
    return int((entry["step"] - 1) // STEPS_A_LINE)


def _mean(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """What is a mean over the tokens of two entries; what isn't is the second's."""
    weights = first["tokens"], second["tokens"]
    both = [name for name in ("loss", "nll") if first.get(name) is not None and second.get(name) is not None]
    means = {name: (first[name] * weights[0] + second[name] * weights[1]) / sum(weights) for name in both}
    means["steps"] = (first.get("steps") or 1) + (second.get("steps") or 1)
    if first.get("rate") and second.get("rate"):
        means["rate"] = sum(weights) / (weights[0] / first["rate"] + weights[1] / second["rate"])
    return {**means, "tokens": sum(weights)}


def summed(steps: list[Step]) -> dict[str, Any]:
    """Several updates as one entry: means over tokens, the last learning rate, the largest norm."""
    tokens = sum(step.tokens for step in steps)
    seconds = sum(step.tokens / step.rate for step in steps)
    last = steps[-1]
    return {
        "step": last.step,
        "steps": len(steps),
        "epoch": last.epoch,
        "loss": sum(step.loss * step.tokens for step in steps) / tokens,
        "nll": sum(step.nll * step.tokens for step in steps) / tokens,
        "tokens": tokens,
        "rate": tokens / seconds,
        "learning_rate": last.learning_rate,
        "norm": max(step.norm for step in steps),
    }


def _stays(line: str, step: int, validated: int) -> bool:
    try:
        data = json.loads(line)
    except ValueError:
        return False
    if not isinstance(data, dict) or not _measured(data):
        return False
    last = validated if data.get("event") == "validation" else step
    return data.get("event") not in NAMES or (data.get("step") or 0) <= last


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    """JSON knows neither paths nor NaN."""
    plain = {name: str(value) if isinstance(value, Path) else value for name, value in data.items()}
    return {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in plain.items()}
