"""Loops compiled before the first test by two workers side by side: each makes a part, and reads the other's from disk.

Left to the tests, both workers would compile all of them at about the same time, which takes each 45 seconds.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from search.models import learn_vocabulary, save_folder
from train.toys import model, optimizer, pairs

import nmt
from nmt.train.rules import Rules
from nmt.train.update import learn


def compile_part(worker: int) -> None:
    """What the worker of this number compiles; those beyond the second nothing."""
    if worker == 0:
        _translate("float32")
        _train("float32")
        _train("bfloat16")
    elif worker == 1:
        _translate("bfloat16")
        _translate("int8")


def _translate(precision: str) -> None:
    with TemporaryDirectory() as folder:
        saved = save_folder(Path(folder) / "model", learn_vocabulary(Path(folder)))
        nmt.load(saved, "cpu").translate(["bal kor"], precision=precision)


def _train(precision: str) -> None:
    trained, data = model(), pairs()
    batches = [data.load(rows) for rows in data.updates(0)[0]]
    learn(trained, optimizer(trained), batches, rate=1e-3, rules=Rules(steps=1, precision=precision), pad=data.pad)  # type: ignore[arg-type]
