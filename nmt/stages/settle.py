"""What `batch_tokens = "auto"` means in a run: measured when training begins, and kept for every restart."""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Literal

from nmt.batches.shards import Shard
from nmt.errors import ModelError
from nmt.events import Event, Notice
from nmt.files import read_json, write_json
from nmt.recipe import Recipe
from nmt.stages.stage import RunFolder
from nmt.train.probe import largest, memory_limit, tried
from nmt.train.ranks import Ranks
from nmt.train.state import resumable

if TYPE_CHECKING:
    import torch


def settled(
    recipe: Recipe,
    run: RunFolder,
    sizes: tuple[int, int, int],
    device: torch.device,
    precision: Literal["float32", "bfloat16"],
    ranks: Ranks,
) -> Generator[Event, None, Recipe]:
    """The recipe with a number for batch_tokens, the same for all processes: that of the least memory.

    `sizes` are those of the vocabularies, source and target, and the padding's id. Raises TrainingError where not even
    the longest pair fits.
    """
    if recipe.train.batch_tokens != "auto":
        return recipe
    found = ranks.first(lambda: kept(run))
    if found is None:
        found = min(ranks.gather(_measured(recipe, run, sizes, device, precision, ranks)))
        if ranks.leads:
            run.checkpoints.mkdir(parents=True, exist_ok=True)
            write_json(run.batch_tokens, {"batch_tokens": found})
    yield Notice(f"train.batch_tokens = auto is {found:,} here; {run.batch_tokens} keeps the number")
    return recipe.model_copy(update={"train": recipe.train.model_copy(update={"batch_tokens": found})})


def kept(run: RunFolder) -> int | None:
    """The number of a training that is to be gone on with. Raises ModelError where the file holds none."""
    if not resumable(run.checkpoints) or not run.batch_tokens.is_file():
        return None
    data = read_json(run.batch_tokens)
    number = data.get("batch_tokens") if isinstance(data, dict) else None
    if type(number) is not int or number < 1:
        raise ModelError(
            f"{run.batch_tokens}: is damaged: it holds no number of tokens",
            "remove it, and the number is measured again",
        )
    return number


def _measured(
    recipe: Recipe,
    run: RunFolder,
    sizes: tuple[int, int, int],
    device: torch.device,
    precision: Literal["float32", "bfloat16"],
    ranks: Ranks,
) -> int:
    """Found with a model of its own, so that training begins with nothing changed."""
    import torch

    train, most = recipe.train, recipe.model.max_length() or sys.maxsize
    source, target = (
        min(int(Shard.open(run.shards / f"train.{side}").lengths.max(initial=1)) + 1, limit, most)
        for side, limit in (("source", train.max_source_tokens), ("target", train.max_target_tokens))
    )
    model = recipe.model.build(*sizes)
    model.initialize(torch.Generator().manual_seed(0))
    model.to(device)
    trial = tried(model, train.optimizer.build(model, precision), (source, target), train.rules(precision), sizes[2])
    return largest(trial, memory_limit(device, ranks.neighbours(device)), max(source, target))
