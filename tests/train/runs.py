"""A whole run of a toy recipe: raw text in files, preprocessed, cut into subwords, ready to train."""

from __future__ import annotations

import random
from pathlib import Path

from nmt.recipe import Recipe, read
from nmt.stages.run import choose, run_stages
from nmt.stages.stage import RunFolder

RECIPE = """
name = "toy"
[languages]
source = "en"
target = "de"
[[data.train]]
source = "train.en"
target = "train.de"
[data.valid]
source = "valid.en"
target = "valid.de"
[bpe]
size = 280
[model]
width = 16
feedforward = 32
encoder_layers = 1
decoder_layers = 1
attention = { heads = 2 }
[train]
batch_tokens = 256
steps = 12
device = "cpu"
validate_every = 5
save_every = 4
curves = false
schedule = { kind = "constant", peak = 3e-3 }
[average]
count = 2
"""


def prepared(folder: Path) -> tuple[Path, RunFolder]:
    """The recipe's file and its run folder, in which all is done that comes before training."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(3)
    words = ["".join(chance.choices("abcdefgh", k=3)) for _ in range(20)]
    for split, lines in (("train", 120), ("valid", 6)):
        sources = [" ".join(chance.choices(words, k=chance.randint(1, 6))) for _ in range(lines)]
        (folder / f"{split}.en").write_text("".join(line + "\n" for line in sources))
        (folder / f"{split}.de").write_text("".join(line[::-1] + "\n" for line in sources))
    (folder / "toy.toml").write_text(RECIPE)
    run = RunFolder(folder / "run")
    for _ in run_stages(recipe(folder), run, choose(last="bpe")):
        pass
    return folder / "toy.toml", run


def recipe(folder: Path, *changes: str, name: str = "toy.toml") -> Recipe:
    """The toy recipe, or another one beside it, changed as by --set."""
    return read(folder / name, list(changes))
