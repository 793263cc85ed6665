"""nmt preprocess: the recipe's stages up to preprocess."""

from __future__ import annotations

from .options import Overrides, Quiet, RecipeFile, RunDir
from .run import perform


def preprocess(recipe: RecipeFile, set_: Overrides = None, run_dir: RunDir = None, quiet: Quiet = False) -> None:
    """Clean the text of RECIPE: normalise, filter, drop duplicates and what is held out.

    Reads the files named in [data]; writes RUN/preprocess with report.json, which counts every dropped pair.

    Example: nmt preprocess recipes/sample.toml
    """
    perform(recipe, set_ or [], run_dir, (None, "preprocess", None))
