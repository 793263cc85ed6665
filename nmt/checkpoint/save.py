"""Write a model folder or a checkpoint, whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from nmt.checkpoint import layout
from nmt.checkpoint.layout import Description
from nmt.checkpoint.tensors import weights, write_tensors
from nmt.errors import OutputError
from nmt.files import sha256, whole_folder, write_json


def save_model(
    folder: Path,
    model: nn.Module | Mapping[str, Tensor],
    description: Description,
    vocabulary_files: Mapping[str, Path],
    extra_files: Mapping[str, Path] | None = None,
) -> None:
    """Make `folder` a complete model: weights, description, vocabulary, whatever else is to travel with it.

    The files' keys are their names in the folder. Raises OutputError, and TrainingError for a weight that isn't finite.
    """
    with whole_folder(folder) as partial:
        write_model(partial, model, description, {**vocabulary_files, **(extra_files or {})})


def save_checkpoint(
    checkpoints: Path,
    step: int,
    model: nn.Module | Mapping[str, Tensor],
    description: Description,
    files: Mapping[str, Path],
    *,
    optimizer: Mapping[str, Tensor],
    rng: Mapping[str, Tensor],
    state: Mapping[str, Any],
    trained: Mapping[str, Tensor] | None = None,
) -> Path:
    """Write checkpoints/step-…, then point last.json at it; return its folder. Raises OutputError, TrainingError.

    `trained` are the weights to go on with, where the model's are others.

    A kill or a full disk at any instant leaves the checkpoints before as they were.
    """
    folder = checkpoints / layout.step_name(step)
    with whole_folder(folder) as partial:
        write_model(partial, model, description, files)
        resume = partial / layout.RESUME
        resume.mkdir()
        parts = {layout.OPTIMIZER: optimizer, layout.RNG: rng}
        if trained is not None:
            parts[layout.TRAINED] = trained
        for name, tensors in parts.items():
            write_tensors(resume / name, tensors)
        write_json(resume / layout.DIGESTS, layout.digests({name: resume / name for name in parts}))
        write_json(resume / layout.STATE, dict(state))
    point(checkpoints, layout.LAST, folder)
    return folder


def point(checkpoints: Path, pointer: str, folder: Path) -> None:
    """Let best.json or last.json name `folder`."""
    write_json(checkpoints / pointer, {"step": folder.name})


def prune(checkpoints: Path, keep: Iterable[Path]) -> list[Path]:
    """Remove every checkpoint not in `keep` and return them. A half removed one never stands under its own name."""
    kept = {path.name for path in keep}
    removed = [path for path in layout.step_folders(checkpoints) if path.name not in kept]
    for path in removed:
        partial = path.with_name(path.name + ".partial")
        path.rename(partial)
        shutil.rmtree(partial, ignore_errors=True)
    return removed


def clean(checkpoints: Path) -> list[Path]:
    """Remove what a killed save or removal left behind, and return it."""
    leftovers = [*checkpoints.glob("*.partial"), *checkpoints.glob("step-*[0-9]/**/.*.partial")]
    for path in leftovers:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return leftovers


def write_model(
    folder: Path, model: nn.Module | Mapping[str, Tensor], description: Description, files: Mapping[str, Path]
) -> None:
    """Write a model's files into a folder that is there, such as one that `whole_folder` is filling."""
    write_tensors(folder / layout.WEIGHTS, weights(model) if isinstance(model, nn.Module) else model)
    told = description.model_copy(update={"weights_sha256": sha256(folder / layout.WEIGHTS)})
    write_json(folder / layout.DESCRIPTION, told.model_dump(mode="json"))
    for name, path in files.items():
        try:
            shutil.copyfile(path, folder / name)
        except OSError as error:
            raise OutputError(f"{folder / name}: cannot be copied from {path}: {error.strerror}") from error
