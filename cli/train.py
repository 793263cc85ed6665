"""nmt train: the recipe's stages up to train."""

from __future__ import annotations

from .options import Overrides, Processes, Quiet, RecipeFile, RunDir
from .run import perform


def train(
    recipe: RecipeFile,
    processes: Processes = None,
    set_: Overrides = None,
    run_dir: RunDir = None,
    quiet: Quiet = False,
) -> None:
    """Train the model that RECIPE describes, going on from its last checkpoint.

    Reads RUN/shards and RUN/bpe (stale stages before it run first); writes RUN/checkpoints, and into RUN journal.jsonl,
    curves.png and validation/.
    Ctrl-C saves and ends; the same command goes on, also with more steps or another number of processes.
    Under torchrun it joins the processes that were started with it.

    Example: nmt train recipes/sample.toml
    """
    perform(recipe, set_ or [], run_dir, (None, "train", None), processes=processes)
