"""The stages' order, and what of the recipe each depends on; where everything of a run lies.

A stage fills folders of its own inside the run folder. When one is stale, nmt/stages/manifest.py tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from nmt.recipe import Recipe

MANIFEST = "manifest.json"
PARENT = "train.start_from"
TOLD = ("valid_examples", "curves", "tensorboard")  # keys of [train] that shape what is told of it, no result


@dataclass(frozen=True)
class RunFolder:
    """Where everything of a run lies."""

    path: Path

    @property
    def recipe(self) -> Path:
        """The resolved recipe, as run."""
        return self.path / "recipe.toml"

    @property
    def journal(self) -> Path:
        """Every event of training, one JSON object a line."""
        return self.path / "journal.jsonl"

    @property
    def curves(self) -> Path:
        """Learning curves as a picture."""
        return self.path / "curves.png"

    @property
    def validation(self) -> Path:
        """Translations of the first validation sentences, a table for each validation."""
        return self.path / "validation"

    @property
    def tensorboard(self) -> Path:
        """What the journal says, for TensorBoard."""
        return self.path / "tensorboard"

    @property
    def preprocess(self) -> Path:
        """Clean text: train and valid, source and target."""
        return self.path / "preprocess"

    @property
    def bpe(self) -> Path:
        """The subword vocabulary, or one for each side."""
        return self.path / "bpe"

    @property
    def shards(self) -> Path:
        """Training and validation pairs as ids."""
        return self.path / "shards"

    @property
    def checkpoints(self) -> Path:
        """Training's checkpoints, and the pointers best.json and last.json."""
        return self.path / "checkpoints"

    @property
    def batch_tokens(self) -> Path:
        """What `batch_tokens = "auto"` was found to be; it stays with the checkpoints."""
        return self.checkpoints / "batch_tokens.json"

    @property
    def model(self) -> Path:
        """The averaged model, complete in itself."""
        return self.path / "model"

    @property
    def translations(self) -> Path:
        """Translated test sets."""
        return self.path / "translations"

    @property
    def scores(self) -> Path:
        """Scores with their signatures."""
        return self.path / "scores"


@dataclass(frozen=True)
class Stage:
    """A step from raw text to scores: the parts of the recipe it depends on, and the folders it fills."""

    name: str
    sections: tuple[str, ...]
    """Keys of the recipe, with dots; a table stands for all its keys. Files named by them are read."""
    after: str | None
    """The stage whose results it reads."""
    folders: tuple[str, ...]
    """Folders of the run folder that it fills; the first holds its manifest."""
    ignores: tuple[str, ...] = ()
    """Parts of `sections` that do not change the result."""
    follows: str | None = None
    """A stage that it runs after each time, whatever that wrote, since it adds to it."""
    resumes: bool = False
    """It goes on where it was left, and its module's `check` tells whether it can; the others start over."""
    joint: bool = False
    """Several processes may do it together, whose ranks its module's `run` is then told."""
    with_context: tuple[str, ...] = ()
    """More keys that it depends on where [preprocess] context_sentences is more than 0."""

    def manifest(self, run: RunFolder) -> Path:
        """Where its manifest lies."""
        return run.path / self.folders[0] / MANIFEST

    def settings(self, recipe: Recipe) -> dict[str, Any]:
        """Every setting it depends on, by dotted key. Files are left out: they count by what they hold."""
        flat = {key: value for key, value in flatten(recipe) if not isinstance(value, Path)}
        sections = self.sections + (self.with_context if recipe.preprocess.context_sentences else ())
        return {k: v for k, v in flat.items() if inside(k, sections) and not inside(k, self.ignores)}

    def files(self, recipe: Recipe) -> dict[str, Path]:
        """Every file it reads from outside the run folder, by the key that names it."""
        flat = {key: value for key, value in flatten(recipe) if isinstance(value, Path)}
        if parent := flat.pop(PARENT, None):
            flat |= _parent_files(parent)
        return {k: v for k, v in flat.items() if inside(k, self.sections) and not inside(k, self.ignores)}


STAGES = {
    stage.name: stage
    for stage in (
        Stage(
            "preprocess",
            ("languages", "data", "preprocess", f"{PARENT}.truecase"),
            None,
            ("preprocess",),
            ignores=("data.download", "data.test.name"),
        ),
        Stage(
            "bpe",
            ("bpe", "seed", f"{PARENT}.vocabulary"),
            "preprocess",
            ("bpe", "shards"),
            with_context=("preprocess.context_sentences", "train.max_source_tokens", "model.position"),
        ),
        Stage(
            "train",
            ("model", "train", "seed", "languages", "preprocess.normalization", "preprocess.moses"),
            "bpe",
            ("checkpoints",),
            ignores=("model.preset", *(f"train.{key}" for key in ("device", "compile", "threads", *TOLD))),
            resumes=True,
            joint=True,
            with_context=("preprocess.context_sentences",),
        ),
        Stage("average", ("average", "translate"), "train", ("model",)),
        Stage("translate", ("translate", "data.test"), "average", ("translations",), ignores=("data.test.target",)),
        Stage(
            "score",
            ("score", "data.test", "languages.target"),
            "translate",
            ("scores",),
            follows="average",  # the scores go into the model's card
        ),
    )
}


def _parent_files(model: Path) -> dict[str, Path]:
    """What a fine-tuning reads of the model it starts from, each under a key that stages may depend on alone."""
    from nmt.checkpoint import layout

    folder = layout.resolve(model)
    files = {f"{PARENT}.weights": folder / layout.WEIGHTS}
    for name in layout.read_description(folder).vocabulary_sha256:
        kind = "truecase" if name in {layout.SOURCE_TRUECASE, layout.TARGET_TRUECASE} else "vocabulary"
        files[f"{PARENT}.{kind}.{name}"] = folder / name
    return files


def inside(key: str, sections: tuple[str, ...]) -> bool:
    """Whether `key`, its places in lists left out, is one of `sections` or stands in one."""
    key = ".".join(part for part in key.split(".") if not part.isdecimal())
    return any(key == section or key.startswith(section + ".") for section in sections)


def flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of a recipe with their dotted keys: ("data.train.0.weight", 1.0)."""
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from flatten(getattr(value, name), f"{prefix}.{name}" if prefix else name)
    elif isinstance(value, tuple | list):
        for i, item in enumerate(value):
            yield from flatten(item, f"{prefix}.{i}")
    else:
        yield prefix, value
