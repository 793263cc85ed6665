"""nmt average: the recipe's stages up to average."""

from __future__ import annotations

from .options import Overrides, Quiet, RecipeFile, RunDir
from .run import perform


def average(recipe: RecipeFile, set_: Overrides = None, run_dir: RunDir = None, quiet: Quiet = False) -> None:
    """Average the last checkpoints of RECIPE's run into one model.

    Reads RUN/checkpoints (stale stages before it run first); writes RUN/model, a folder complete in itself.

    Example: nmt average recipes/sample.toml
    """
    perform(recipe, set_ or [], run_dir, (None, "average", None))
