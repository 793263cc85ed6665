"""The stage translate: the source side of every test set → translations, and the model's opinion of each."""

from __future__ import annotations

from collections.abc import Iterator

from nmt.events import Caution, Event
from nmt.files import whole_folder
from nmt.recipe import Recipe
from nmt.stages.stage import RunFolder


def run(recipe: Recipe, run: RunFolder) -> Iterator[Event]:
    """Fill `run.translations`: NAME.LANG with a line for each source line, NAME.LANG.jsonl with scores and tokens.

    The folder appears whole or not at all. Raises ModelError, DataError, OutputError.
    """
    if not recipe.data.test:
        yield Caution("the recipe names no [[data.test]], so there is nothing to translate")
    with whole_folder(run.translations) as folder:
        if not recipe.data.test:
            return
        from nmt.checkpoint.load import load_translator  # torch: only once there is something to do
        from nmt.search.control.request import Request
        from nmt.search.files import translate_file

        translator = load_translator(run.model, recipe.train.device, recipe.train.threads)
        for test in recipe.data.test:
            output = folder / f"{test.name}.{test.target_language or recipe.languages.target}"
            yield from translate_file(
                translator,
                test.source,
                output,
                on_bad_bytes=recipe.preprocess.on_bad_bytes,
                label=f"translate: {test.name}",
                records=output.with_name(f"{output.name}.jsonl"),
                common=Request("", tag=test.tag or ""),
                **recipe.translate.model_dump(),
            )
