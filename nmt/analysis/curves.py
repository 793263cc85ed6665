"""Learning curves as a picture, drawn by matplotlib, which comes with the extra `plots`."""

from __future__ import annotations

import importlib.util
import io
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.analysis.charts import Point, points_of, thinned
from nmt.files import write_whole
from nmt.train.journal import joined, made_once, read_journal

SHARE, GUESS = 0.02, 2.0  # of the time that training takes; seconds that the first picture is thought to take
MARKED = 60  # points of a line that are few enough to be marked


class Curves:
    """Draws the journal at `journal` into `path`, often only where that takes next to none of training's time."""

    def __init__(self, journal: Path, path: Path, title: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.journal = journal
        self.path = path
        self.title = title
        self._clock = clock
        self._began, self._spent, self._last = clock(), 0.0, GUESS

    def due(self) -> bool:
        """Whether another picture leaves the time spent on pictures below the `SHARE` of all."""
        return self._spent + self._last <= SHARE * (self._clock() - self._began)

    def draw(self) -> bool:
        """The picture of all that the journal holds; whether there is something to draw. Raises OutputError."""
        start = self._clock()
        drawn = draw(joined(made_once(read_journal(self.journal))), self.title)
        if drawn:
            with write_whole(self.path) as stream:
                stream.write(drawn)
        self._last = self._clock() - start
        self._spent += self._last
        return bool(drawn)


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def draw(entries: Sequence[Mapping[str, Any]], title: str) -> bytes:
    """A PNG of losses, validation BLEU and learning rate over updates; nothing where nothing was measured."""
    from matplotlib.figure import Figure  # not pyplot, which opens windows and keeps figures

    steps = [entry for entry in entries if entry.get("event") == "step"]
    checks = [entry for entry in entries if entry.get("event") == "validation"]
    training = points_of(steps, "nll" if steps and "nll" in steps[0] else "loss")
    panels = {
        "loss: −log p of a target token, in nats": {"training": training, "validation": points_of(checks, "loss")},
        "validation BLEU": {"": points_of(checks, "bleu")},
        "learning rate": {"": points_of(steps, "learning_rate")},
    }
    shown = {name: lines for name, lines in panels.items() if any(lines.values())}
    if not shown:
        return b""
    figure = Figure(figsize=(4.2 * len(shown), 3.4))
    figure.subplots_adjust(left=0.16 / len(shown), right=1 - 0.04 / len(shown), bottom=0.15, top=0.84, wspace=0.25)
    figure.suptitle(title.replace("$", r"\$"), fontsize=10)
    for axes, (name, lines) in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown.items(), strict=True):
        _panel(axes, name, lines)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def _panel(axes: Any, name: str, lines: Mapping[str, Sequence[Point]]) -> None:
    """One chart. Lines of many updates are thin; those of some validations have marks."""
    for color, (label, points) in enumerate(lines.items()):
        few = len(points) <= MARKED and label != "training"
        columns = zip(*thinned(points), strict=True) if points else ((), ())
        axes.plot(*columns, "o-" if few else "-", label=label, color=f"C{color}", linewidth=1.2, markersize=3)
    axes.set_title(name, fontsize=9)
    axes.set_xlabel("updates", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=max(axes.get_ylim()[0], 0))  # nothing that is drawn is less, but for the margin
    axes.grid(True, linewidth=0.4, alpha=0.6)
    if len(lines) > 1:
        axes.legend(loc="upper right", fontsize=8, frameon=False)
