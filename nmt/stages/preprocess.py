"""The stage preprocess: raw corpora → clean training and validation pairs, and a report of what was left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nmt.corpus.prepare import Corpus, prepare
from nmt.events import Event
from nmt.files import whole_folder
from nmt.recipe import Recipe
from nmt.stages.parent import parent_of

if TYPE_CHECKING:
    from nmt.stages.stage import RunFolder


def run(recipe: Recipe, run: RunFolder) -> Iterator[Event]:
    """Fill `run.preprocess`, whole or not at all. Raises DataError as `prepare` does, and OutputError."""
    rules, languages, data = recipe.preprocess, recipe.languages, recipe.data
    parent = parent_of(recipe)
    cleaners = rules.build(languages.source), rules.build(languages.target)
    with whole_folder(run.preprocess) as folder:
        yield from prepare(
            folder,
            [Corpus(source.build(), source.weight, source.tag) for source in data.train],
            [Corpus(source.build(), tag=source.tag) for source in data.valid_sets],
            [test.files() for test in data.test],
            cleaners,
            rules.filters(),
            on_bad_bytes=rules.on_bad_bytes,
            truecase=rules.moses is not None and rules.moses.truecase,
            recase=rules.recase(),
            truecase_models=parent.truecase if parent else {},
            context_sentences=rules.context_sentences,
        )
