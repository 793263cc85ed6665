"""The journal's numbers as TensorBoard reads them. Its package comes with the extra `tensorboard`."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from nmt.errors import TrainingError

STEP = ("loss", "nll", "rate", "learning_rate", "norm")
VALIDATION = ("loss", "perplexity", "bleu", "chrf")


def check_tensorboard() -> None:
    """Raises TrainingError where TensorBoard's package is not installed."""
    if importlib.util.find_spec("tensorboard") is None:
        raise TrainingError(
            "train.tensorboard = true: the package tensorboard, which writes its files, is not installed",
            'pip install "nmt[tensorboard]"',
        )


class Board:
    """Writes entries of the journal into `folder`/train and `folder`/validation, two runs that share charts.

    Whoever reads the files leaves out what earlier attempts said of updates after `step` and of validations after
    `validated`, which are made again. Raises TrainingError without TensorBoard's package.
    """

    def __init__(self, folder: Path, step: int, validated: int) -> None:
        check_tensorboard()
        from torch.utils.tensorboard import SummaryWriter

        last = {"train": step, "validation": validated}
        self._writers = {name: SummaryWriter(str(folder / name), purge_step=done + 1) for name, done in last.items()}

    def write(self, entry: Mapping[str, Any]) -> None:
        """Take in an entry; what training's steps and validations have not measured is no point."""
        name = {"step": "train", "validation": "validation"}.get(str(entry.get("event")))
        if name is not None:
            time = datetime.fromisoformat(entry["time"]).timestamp()
            for key, value in _numbers(name, entry):
                self._writers[name].add_scalar(key, value, entry["step"], walltime=time)
        if entry.get("event") != "step":  # a checkpoint or a validation: what was said so far must last
            for writer in self._writers.values():
                writer.flush()

    def close(self) -> None:
        """All is written."""
        for writer in self._writers.values():
            writer.close()


def _numbers(name: str, entry: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The entry's numbers under the names of their charts; those of each validation set stand below the mean's."""
    for key in STEP if name == "train" else VALIDATION:
        if entry.get(key) is not None:
            yield key, entry[key]
    for held, scores in entry.get("sets", {}).items():
        yield from ((f"{key}/{held}", value) for key, value in scores.items())
