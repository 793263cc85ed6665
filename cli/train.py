"""nmt train: the recipe's stages up to train."""

from __future__ import annotations

from .options import Overrides, Quiet, RecipeFile, RunDir
from .run import perform


def train(recipe: RecipeFile, set_: Overrides = None, run_dir: RunDir = None, quiet: Quiet = False) -> None:
    """Train the model that RECIPE describes, going on from its last checkpoint.

    Reads RUN/shards and RUN/bpe (stale stages before it run first); writes RUN/checkpoints and RUN/journal.jsonl.
    Ctrl-C saves and ends; the same command goes on, also with more steps.

    Example: nmt train recipes/sample.toml
    """
    perform(recipe, set_ or [], run_dir, (None, "train", None))
