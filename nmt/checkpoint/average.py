"""The mean of several checkpoints' weights (Vaswani et al. 2017, §6.1)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from nmt.checkpoint import layout
from nmt.checkpoint.card import write_card
from nmt.checkpoint.header import read_shapes
from nmt.checkpoint.layout import Description
from nmt.checkpoint.save import write_model
from nmt.checkpoint.tensors import read_tensors
from nmt.errors import ModelError, OutputError
from nmt.events import Event, Notice
from nmt.files import whole_folder
from nmt.search.config import SearchConfig


def average(folders: Sequence[Path], trained: bool = False) -> dict[str, Tensor]:
    """The mean of the folders' weights in float32, summed in float64 and in a fixed order: however they are listed.

    `trained` takes the weights that training goes on with, where the models are moving averages of them. Raises
    ModelError when they are not checkpoints of one model.
    """
    if not folders:
        raise ModelError("no checkpoints to average", "name at least one")
    ordered = sorted({path.resolve() for path in folders}, key=lambda path: (layout.step_number(path) or 0, str(path)))
    check_alike(ordered)
    sums: dict[str, Tensor] = {}
    for folder in ordered:
        for name, tensor in (trained_weights(folder) if trained else read_tensors(folder / layout.WEIGHTS)).items():
            wide = tensor.to(torch.float64)
            sums[name] = sums[name].add_(wide) if name in sums else wide.clone()
    return {name: (total / len(ordered)).to(torch.float32) for name, total in sums.items()}


def trained_weights(folder: Path) -> dict[str, Tensor]:
    """The weights that training goes on with from a checkpoint. Raises ModelError where it can't."""
    resume = folder / layout.RESUME
    if not resume.is_dir():
        raise ModelError(
            f"{folder}: lacks {layout.RESUME}/, where the trained weights would lie if its own are moving averages",
            'set [average] weights = "saved"',
        )
    trained = read_tensors(resume / layout.TRAINED) if (resume / layout.TRAINED).is_file() else {}
    return {**read_tensors(folder / layout.WEIGHTS), **trained}


def average_into(
    folder: Path, chosen: Sequence[Path], translate: SearchConfig | None = None, trained: bool = False
) -> Iterator[Event]:
    """Make `folder` a complete model, with its card, whose weights are the mean of those of `chosen`.

    `translate` replaces the search settings that the checkpoints hold; `trained` is as in `average`. Raises ModelError
    for checkpoints of different models, OutputError when `folder` cannot be written.
    """
    yield Notice(f"averaging {', '.join(path.name for path in chosen)}")
    mean = average(chosen, trained)
    description = layout.read_description(chosen[0])
    steps = sorted({step for path in chosen for step in layout.read_description(path).origin.steps})
    changes: dict[str, object] = {"origin": description.origin.model_copy(update={"steps": tuple(steps)})}
    if translate is not None:
        changes["translate"] = translate
    with whole_folder(folder) as partial:
        files = {name: chosen[0] / name for name in description.vocabulary_sha256}
        write_model(partial, mean, description.model_copy(update=changes), files)
        write_card(partial)


def check_alike(folders: Sequence[Path]) -> None:
    """Raises ModelError unless all are of one model: settings, vocabulary, names and shapes of the weights."""
    first, *others = folders
    one, shapes = layout.read_description(first), read_shapes(first / layout.WEIGHTS)
    for folder in others:
        other = layout.read_description(folder)
        for field, mine in _shared(one).items():
            if mine != _shared(other)[field]:
                raise ModelError(
                    f"{folder}: its {field} is not that of {first}; only checkpoints of one training can be averaged",
                    "average checkpoints of one run",
                )
        if read_shapes(folder / layout.WEIGHTS) != shapes:
            raise ModelError(f"{folder}: its weights have other shapes than those of {first}", "average one run's")


def _shared(of: Description) -> dict[str, object]:
    return {
        "languages": of.languages,
        "model": of.model.shape(),
        "text": of.text,
        "vocabulary_sha256": of.vocabulary_sha256,
    }


def average_named(
    models: Sequence[Path], output: Path, *, last: int | None = None, best: int | None = None, by: str = "bleu"
) -> Iterator[Event]:
    """Average the last or the best checkpoints of the one run named, or the folders named, into `output`.

    Raises ModelError, and OutputError when `output` holds something that is not a model: that is never replaced.
    """
    taken = output.exists() and not (output / layout.DESCRIPTION).is_file()
    if taken and (not output.is_dir() or any(output.iterdir())):
        raise OutputError(f"{output}: is there and is not a model folder; it is not replaced", "choose another name")
    yield from average_into(output, choose(models, last=last, best=best, by=by))


def choose(models: Sequence[Path], *, last: int | None = None, best: int | None = None, by: str = "bleu") -> list[Path]:
    """The folders to average: the last or the best of the one run named, or those named. Raises ModelError."""
    if last is None and best is None:
        return [layout.resolve(model) for model in models]
    run = models[0]
    checkpoints = run / "checkpoints" if (run / "checkpoints").is_dir() else run
    return newest(checkpoints, last) if last else finest(checkpoints, best or 1, by)


def newest(checkpoints: Path, count: int) -> list[Path]:
    """The newest `count` checkpoints by their steps as numbers, oldest first; all where there are fewer."""
    return _some(checkpoints)[-count:]


def finest(checkpoints: Path, count: int, by: str) -> list[Path]:
    """The `count` checkpoints that validated best by `by` (loss, bleu or chrf), best first; the earlier of equals.

    Raises ModelError where no checkpoint was validated.
    """
    rated = []
    for folder in _some(checkpoints):
        value = (layout.read_validation(folder) or {}).get(by)
        if isinstance(value, int | float) and math.isfinite(value):
            rated.append((value if by == "loss" else -value, layout.step_number(folder) or 0, folder))
    if not rated:
        raise ModelError(f"{checkpoints}: no checkpoint has a validation {by}", "average the last ones instead")
    return [folder for _, _, folder in sorted(rated)[:count]]


def _some(checkpoints: Path) -> list[Path]:
    found = layout.step_folders(checkpoints)
    if not found:
        raise ModelError(f"{checkpoints}: holds no checkpoint", "train first: nmt train RECIPE")
    return found
