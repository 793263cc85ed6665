"""A toy recipe whose targets begin with a word of the sentence before."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

from train.runs import RECIPE

TEXT = RECIPE.replace("[bpe]\nsize = 280", "[preprocess]\ncontext_sentences = 1\n[bpe]\nsize = 310").replace(
    "[bpe]", '[[data.test]]\nsource = "valid.en"\ntarget = "valid.de"\n[bpe]', 1
)
WORDS = ["".join(letters) for letters in itertools.product("bdgk", "aeo", "lm")]


def document(chance: random.Random, lines: int) -> tuple[list[str], list[str]]:
    """Sentences, and each with the first word of the one before it, or "new" where there is none, put before it."""
    sources = [" ".join(chance.choices(WORDS, k=chance.randint(1, 4))) for _ in range(lines)]
    before = ["new", *(source.split()[0] for source in sources)]
    return sources, [f"{word} {source}" for word, source in zip(before, sources, strict=False)]


def write(folder: Path, documents: int = 12) -> Path:
    """The corpora and toy.toml in `folder`: documents of six sentences, with a blank line after each."""
    chance = random.Random(5)
    for split, count in (("train", documents), ("valid", 3)):
        sides = [document(chance, 6) for _ in range(count)]
        for side, name in enumerate(("en", "de")):
            (folder / f"{split}.{name}").write_text("".join("\n".join([*one[side], "", ""]) for one in sides))
    (folder / "toy.toml").write_text(TEXT)
    return folder / "toy.toml"
