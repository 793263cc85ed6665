"""nmt download: fetch a recipe's data."""

from __future__ import annotations

from . import show
from .options import Overrides, Quiet, RecipeFile


def download(recipe: RecipeFile, set_: Overrides = None, quiet: Quiet = False) -> None:
    """Fetch the files that RECIPE says where to get.

    Reads the recipe's [[data.download]] entries; writes the files they name. Interrupted downloads are continued, files
    that are there are left alone. No other command downloads anything.

    Example: nmt download recipes/multi30k-en-de.toml
    """
    from nmt.corpus.download import fetch_all
    from nmt.recipe import read

    data = read(recipe, set_ or []).data
    if not data.download:
        show.say(f"{recipe}: names nothing to download, having no [[data.download]]")
    show.progress(fetch_all([entry.build() for entry in data.download], data.files()))
