"""A toy recipe of two tasks: copying the source under one tag, reversing its letters under another."""

from __future__ import annotations

from pathlib import Path

from train.runs import RECIPE

SETS = """
[[data.train]]
source = "a.xx"
target = "copy.xx"
tag = "<2xx>"
[[data.train]]
source = "a.xx"
target = "back.yy"
tag = "<2yy>"
[[data.valid]]
source = "valid.xx"
target = "valid.xx.copy"
tag = "<2xx>"
[[data.valid]]
source = "valid.xx"
target = "valid.yy"
tag = "<2yy>"
target_language = "zh"
[[data.test]]
name = "copy"
source = "valid.xx"
target = "valid.xx.copy"
tag = "<2xx>"
[[data.test]]
name = "back"
source = "valid.xx"
target = "valid.yy"
tag = "<2yy>"
target_language = "zh"
"""
TEXT = RECIPE[: RECIPE.index("[[data.train]]")] + SETS + RECIPE[RECIPE.index("[bpe]") :].replace("280", "290")


def write(folder: Path) -> Path:
    """The corpora and toy.toml in `folder`; returns the recipe's file."""
    lines = [" ".join(words) for words in zip("abcdefgh" * 9, "bcdefg" * 12, "cdefgha" * 11, strict=False)]
    for name, text in (("a.xx", lines), ("copy.xx", lines), ("back.yy", [line[::-1] for line in lines])):
        (folder / name).write_text("".join(line + "\n" for line in text))
    held = ["x y z", "<2yy> x", "z y"]
    for name, text in (("valid.xx", held), ("valid.xx.copy", held), ("valid.yy", [line[::-1] for line in held])):
        (folder / name).write_text("".join(line + "\n" for line in text))
    (folder / "toy.toml").write_text(TEXT)
    return folder / "toy.toml"
