"""Loops compiled before the first test, where several workers share the tests: each kind by one of them.

Left to the tests, all workers would compile all kinds at about the same time, a minute each.
"""

from __future__ import annotations

import fcntl
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from search.models import learn_vocabulary, save_folder
from train.toys import model, optimizer, pairs

import nmt
from nmt.train.rules import Rules
from nmt.train.update import learn


def compile_kinds(shared: Path, backwards: bool) -> None:
    """Returns when every kind is compiled, by this worker or by another one that knows the folder `shared`."""
    for name, use in list(KINDS.items())[:: -1 if backwards else 1]:
        with (shared / f"{name}.lock").open("a+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not lock.seek(0, 2):  # its end, wherever it was when the file was opened
                use()
                lock.write("compiled")


def translate(precision: str) -> None:
    """Anything."""
    with TemporaryDirectory() as folder:
        saved = save_folder(Path(folder) / "model", learn_vocabulary(Path(folder)))
        nmt.load(saved, "cpu").translate(["bal kor"], precision=precision)


def train(*precisions: str) -> None:
    """One update in each."""
    for precision in precisions:
        trained, data = model(width=64), pairs()  # wide enough for attention to be a loop
        batches, rules = [data.load(rows) for rows in data.updates(0)[0]], Rules(steps=1, precision=precision)  # type: ignore[arg-type]
        learn(trained, optimizer(trained), batches, rate=1e-3, rules=rules, pad=data.pad)


KINDS = {
    "train": partial(train, "float32", "bfloat16"),
    "float32": partial(translate, "float32"),
    "bfloat16": partial(translate, "bfloat16"),
    "int8": partial(translate, "int8"),
}
