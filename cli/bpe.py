"""nmt bpe: the recipe's stages up to bpe."""

from __future__ import annotations

from .options import Overrides, Quiet, RecipeFile, RunDir
from .run import perform


def bpe(recipe: RecipeFile, set_: Overrides = None, run_dir: RunDir = None, quiet: Quiet = False) -> None:
    """Learn the subword vocabulary of RECIPE and encode its text.

    Reads RUN/preprocess (which is made first when it is stale); writes RUN/bpe and RUN/shards.

    Example: nmt bpe recipes/sample.toml
    """
    perform(recipe, set_ or [], run_dir, (None, "bpe", None))
