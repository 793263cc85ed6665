"""Trains a prepared run while killing it at random moments, often inside a save: killed.py FOLDER KILLS SEED.

All modules are loaded once; every attempt is a fork of this process, which has one thread.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import torch
import torch._dynamo  # what every optimizer loads when it is built
from train.runs import recipe

from nmt.corpus.sources import plain
from nmt.model import transformer
from nmt.model.attention import dot
from nmt.model.position import sinusoidal
from nmt.score import bleu, chrf
from nmt.stages.stage import RunFolder
from nmt.stages.train import run
from nmt.train import fit, journal, resume, rules, schedule, signals, validate

LOADED = plain, transformer, dot, sinusoidal, bleu, chrf, fit, journal, resume, rules, schedule, signals, validate


def attempt(folder: Path, events: int | None, delay: float = 0.0) -> bool:
    """One training, killed `delay` seconds after so many `events`, or never; whether it came to its end."""
    ear, mouth = os.pipe()
    child = os.fork()
    if child == 0:
        for _ in run(recipe(folder, "train.save_every=1"), RunFolder(folder / "run")):
            os.write(mouth, b".")
        os._exit(0)
    os.close(mouth)
    if events is not None:
        for _ in range(events):
            os.read(ear, 1)
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    os.close(ear)
    return os.waitstatus_to_exitcode(status) == 0


def main(folder: Path, kills: int, seed: int) -> None:
    torch.set_num_threads(1)
    chance = random.Random(seed)
    for _ in range(kills):
        attempt(folder, chance.randint(1, 6), chance.uniform(0, 0.02))
    if not attempt(folder, None):
        raise SystemExit("the last attempt failed")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
