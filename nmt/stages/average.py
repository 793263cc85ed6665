"""The stage average: the mean of the last or best checkpoints, as a model folder that is complete in itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nmt.checkpoint import layout
from nmt.events import Caution, Event, Notice
from nmt.files import whole_folder
from nmt.recipe import Recipe
from nmt.stages.stage import RunFolder


def run(recipe: Recipe, run: RunFolder) -> Iterator[Event]:
    """Write the averaged model to `run.model`. Raises ModelError where there are no checkpoints to average."""
    from nmt.checkpoint.average import best, last

    count = recipe.average.count
    if recipe.average.of == "best":
        chosen = best(run.checkpoints, count, recipe.train.best_by)
    else:
        chosen = last(run.checkpoints, count)
    if len(chosen) < count:
        yield Caution(f"only {len(chosen)} of the {count} checkpoints that [average] count asks for are there")
    yield from average_into(run.model, chosen, recipe)


def average_into(folder: Path, chosen: list[Path], recipe: Recipe | None = None) -> Iterator[Event]:
    """Make `folder` a complete model whose weights are the mean of those of `chosen`; a recipe brings its [translate].

    Raises ModelError for checkpoints of different models, OutputError.
    """
    from nmt.checkpoint.average import average
    from nmt.checkpoint.card import write_card
    from nmt.checkpoint.save import write_model

    yield Notice(f"averaging {len(chosen)} checkpoints: {', '.join(path.name for path in chosen)}")
    weights = average(chosen)
    description = layout.read_description(chosen[0])
    steps = sorted(step for path in chosen for step in layout.read_description(path).origin.steps)
    origin = description.origin.model_copy(update={"steps": tuple(steps)})
    translate = recipe.translate if recipe is not None else description.translate
    with whole_folder(folder) as partial:
        files = {name: chosen[0] / name for name in description.vocabulary_sha256}
        write_model(partial, weights, description.model_copy(update={"origin": origin, "translate": translate}), files)
        write_card(partial)
