"""Invented languages that a model can learn to perfection: the target copies the source, or reverses its words."""

from __future__ import annotations

import gzip
import itertools
import random
from collections.abc import Callable
from pathlib import Path

WORDS = ["".join(letters) for letters in itertools.product("bdgk", "aeo", "lmnr")]
TASKS: dict[str, Callable[[list[str]], list[str]]] = {"copy": lambda words: words, "reverse": lambda words: words[::-1]}

RECIPE = """\
name = "{task}"

[languages]
source = "aa"
target = "bb"

[[data.train]]
source = "train.aa.gz"
target = "train.bb.gz"

[data.valid]
source = "valid.aa"
target = "valid.bb"

[[data.test]]
source = "test.aa"
target = "test.bb"

[bpe]
size = 340

[train]
device = "cpu"
curves = false
threads = 1
"""


def pairs(task: str, count: int, longest: int = 8, seed: int = 13) -> list[tuple[str, str]]:
    """Sentences of 2 to `longest` invented words with what the task makes of them.

    The few sentences of one word would nearly all stand in the held-out sets, and so be left out of training.
    """
    chance = random.Random(seed)
    sources = [chance.choices(WORDS, k=chance.randint(2, longest)) for _ in range(count)]
    return [(" ".join(words), " ".join(TASKS[task](words))) for words in sources]


def write(folder: Path, task: str, settings: str, train: int, held_out: int, longest: int = 8) -> Path:
    """Corpora of the task in `folder`, the training text packed; returns the recipe, to which `settings` were added."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, count) in enumerate((("train", train), ("valid", held_out), ("test", held_out))):
        columns = zip(*pairs(task, count, longest, seed), strict=True)
        for language, lines in zip(("aa", "bb"), columns, strict=True):
            data = "".join(f"{line}\n" for line in lines).encode()
            if name == "train":
                (folder / f"train.{language}.gz").write_bytes(gzip.compress(data))
            else:
                (folder / f"{name}.{language}").write_bytes(data)
    recipe = folder / f"{task}.toml"
    recipe.write_text(RECIPE.format(task=task) + settings, encoding="utf-8")
    return recipe
