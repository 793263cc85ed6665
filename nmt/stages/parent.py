"""The model that a fine-tuning starts from: what must fit it, what is taken over from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.checkpoint import layout
from nmt.checkpoint.layout import Description
from nmt.errors import ModelError, RecipeError
from nmt.events import Caution, Event, Notice
from nmt.files import sha256
from nmt.recipe import Recipe
from nmt.stages.stage import RunFolder
from nmt.train.resume import differences

if TYPE_CHECKING:
    from nmt.model.seq2seq import Seq2Seq


@dataclass(frozen=True)
class Parent:
    """A whole model folder, and what it says of itself."""

    folder: Path
    description: Description

    @property
    def vocabularies(self) -> dict[str, Path]:
        """Each side's vocabulary file."""
        told = self.description
        return {"source": self.folder / told.source_vocabulary, "target": self.folder / told.target_vocabulary}

    @property
    def truecase(self) -> dict[str, Path]:
        """Each side's truecase model; empty where there is none."""
        names = {"source": layout.SOURCE_TRUECASE, "target": layout.TARGET_TRUECASE}
        return {s: self.folder / name for s, name in names.items() if name in self.description.vocabulary_sha256}

    @property
    def weights_sha256(self) -> str:
        """Digest of the weights: that in model.json, or where an old folder has none, the file's."""
        return self.description.weights_sha256 or sha256(self.folder / layout.WEIGHTS)

    @property
    def origin(self) -> layout.Parent:
        """What a model that started here tells of it."""
        name = self.description.origin.name or self.folder.name
        return layout.Parent(name=name, steps=self.description.origin.steps, weights_sha256=self.weights_sha256)


def parent_of(recipe: Recipe) -> Parent | None:
    """The model that [train] start_from names, or None without one. Raises ModelError where there is no such model."""
    if recipe.train.start_from is None:
        return None
    folder = layout.resolve(recipe.train.start_from)
    return Parent(folder, layout.read_description(folder))


def check_parent(recipe: Recipe, run: RunFolder) -> None:
    """Raises one RecipeError that lists all in which the recipe must be as its parent and isn't."""
    parent = parent_of(recipe)
    if parent is None:
        return
    place = f"[train] start_from = {recipe.train.start_from}"
    if parent.folder.resolve().is_relative_to(run.path.resolve()):
        raise RecipeError(
            f"{place}: lies in {run.path}, the very folder that is trained into",
            "train in another folder with --run-dir, or copy the model elsewhere",
        )
    changes = [text for _, text in differences(_fixed(parent.description), _asked(recipe))]
    if changes:
        raise RecipeError(
            f"{place}: weights that are gone on with keep their shapes and their text; the recipe has others: "
            f"{'; '.join(changes)}",
            "write the values on the left into the recipe, such as nmt checkpoint show prints them",
        )


def told_of_parent(recipe: Recipe, parent: Parent) -> Iterator[Event]:
    """What to know before it starts."""
    old, new = parent.description.languages, recipe.languages
    yield Notice(f"weights start from {parent.folder}")
    if old != new:
        yield Caution(
            f"{parent.folder} translates {old.source} → {old.target}; it is trained for {new.source} → {new.target}"
        )


def begin(parent: Parent, model: Seq2Seq) -> None:
    """Put the parent's weights into `model`. Rows of pieces that the parent hasn't stay as they were drawn.

    Raises ModelError for a damaged folder.
    """
    import torch

    from nmt.checkpoint.load import load_model
    from nmt.checkpoint.tensors import weights

    stored = weights(load_model(parent.folder)[1])
    with torch.no_grad():
        for name, tensor in weights(model).items():
            old = stored[name]
            place = tensor[: len(old)] if tensor.dim() else tensor
            place.copy_(old)


def check_vocabulary(parent: Parent, files: dict[str, Path]) -> None:
    """Raises ModelError unless every piece of the parent has its number in `files`, to which others may be added."""
    for side, path in files.items():
        if not path.read_bytes().startswith(parent.vocabularies[side].read_bytes()):
            raise ModelError(
                f"{path}: isn't the vocabulary of {parent.folder}, whose weights are to be gone on with",
                "nmt run RECIPE --force bpe takes it over",
            )


def _fixed(of: Description) -> dict[str, Any]:
    return {
        "model": of.model.shape(),
        "preprocess": of.text.model_dump(mode="json"),
        "bpe": {"shared": of.shared_vocabulary},
    }


def _asked(recipe: Recipe) -> dict[str, Any]:
    return {
        "model": recipe.model.shape(),
        "preprocess": recipe.preprocess.text().model_dump(mode="json"),
        "bpe": {"shared": recipe.bpe.shared},
    }
