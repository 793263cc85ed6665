"""The stage average: the mean of the last or best checkpoints, as a model folder that is complete in itself."""

from __future__ import annotations

from collections.abc import Iterator

from nmt.events import Caution, Event
from nmt.recipe import Recipe
from nmt.stages.stage import RunFolder


def run(recipe: Recipe, run: RunFolder) -> Iterator[Event]:
    """Write the averaged model to `run.model`. Raises ModelError where there are no checkpoints to average."""
    from nmt.checkpoint.average import average_into, finest, newest

    count = recipe.average.count
    if recipe.average.of == "best":
        chosen = finest(run.checkpoints, count, recipe.train.best_by)
    else:
        chosen = newest(run.checkpoints, count)
    if len(chosen) < count:
        yield Caution(f"only {len(chosen)} of the {count} checkpoints that [average] count asks for are there")
    yield from average_into(run.model, chosen, recipe.translate, recipe.average.weights == "trained")
