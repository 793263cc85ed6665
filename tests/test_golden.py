"""The first ten losses of recipes/sample.toml: numerics never drift unseen.

They were computed in float32 with one thread. Processors add in different orders, so other machines agree to about
six digits at first and lose some with every update; a change of the mathematics, of the order of the data or of a
random number shows in the third digit at the latest. Whoever means to change them runs this file as a program, which
writes them anew, and says so in CHANGELOG.md.
"""

from __future__ import annotations

import json
import sys
import tempfile
from itertools import islice
from pathlib import Path

import pytest

from nmt.recipe import read
from nmt.stages import train
from nmt.stages.run import choose, run_stages
from nmt.stages.stage import RunFolder

ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).parent / "golden" / "sample.json"
TOLERANCE = 2e-4


def first_losses(folder: Path, count: int = 10) -> list[float]:
    """The losses of the recipe's first updates, trained in `folder`."""
    settings = ("train.device=cpu", "train.precision=float32", "train.threads=1")
    recipe, run = read(ROOT / "recipes" / "sample.toml", settings), RunFolder(folder)
    for _ in run_stages(recipe, run, choose(last="bpe")):
        pass
    training = train.run(recipe, run)
    try:
        steps = (event for event in training if type(event).__name__ == "Step")
        return [step.loss for step in islice(steps, count)]
    finally:
        training.close()


def test_the_sample_recipe_begins_with_the_losses_on_record(tmp_path: Path) -> None:
    expected = json.loads(GOLDEN.read_text(encoding="utf-8"))["losses"]
    assert first_losses(tmp_path) == pytest.approx(expected, rel=TOLERANCE)


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        record = {"recipe": "recipes/sample.toml", "losses": [round(loss, 6) for loss in first_losses(Path(folder))]}
    GOLDEN.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(GOLDEN.read_text(encoding="utf-8"))
