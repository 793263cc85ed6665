"""The stage score: every translated test set against its raw references, and the results into the model's card."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from nmt import __version__
from nmt.corpus.config import TestSetConfig
from nmt.errors import DataError
from nmt.events import Caution, Event, Notice
from nmt.files import write_json
from nmt.recipe import Recipe
from nmt.score.evaluate import Result, evaluate_texts
from nmt.score.metric import Score
from nmt.score.report import line, result_as_json
from nmt.score.texts import read_texts
from nmt.stages.stage import RunFolder

FILE = "scores.json"
RESAMPLES = 1000
MOST_RESAMPLED = 5000
"""Lines of the largest set that gets confidence intervals: sacrebleu resamples all lines at once, in memory."""


def run(recipe: Recipe, run: RunFolder) -> Iterator[Event]:
    """Write `run.scores`/scores.json and the scores into the card of `run.model`.

    Raises DataError when a translation is missing, when line counts differ or when a tokenizer is not installed.
    """
    from nmt.checkpoint.card import write_card

    language = recipe.languages.target
    sets: list[dict[str, Any]] = []
    named: list[tuple[str, Score]] = []
    if not recipe.data.test:
        yield Notice("score: the recipe has no test set")
    for test in recipe.data.test:
        result = _score(test, recipe, run)
        for text in result.cautions:
            yield Caution(f"{test.name}: {text}")
        for score in result.scores:
            yield Notice(f"{test.name}: {line(replace(score, interval=None))}")
            named.append((test.name, score))
        other = {"language": test.target_language} if test.target_language else {}
        sets.append({"name": test.name, **other, **result_as_json(result)})
    run.scores.mkdir(parents=True, exist_ok=True)
    write_json(run.scores / FILE, {"format": 1, "nmt": __version__, "language": language, "sets": sets})
    write_card(run.model, named)


def _score(test: TestSetConfig, recipe: Recipe, run: RunFolder) -> Result:
    """The set as `nmt score` would score it, with confidence intervals where they are cheap."""
    language = test.target_language or recipe.languages.target
    hypothesis = run.translations / f"{test.name}.{language}"
    if not hypothesis.exists():
        raise DataError(f"{hypothesis}: is missing", "nmt run RECIPE --only translate")
    texts = read_texts([hypothesis], test.target, test.source, recipe.preprocess.on_bad_bytes)
    resamples = RESAMPLES if len(texts) <= MOST_RESAMPLED else 0
    return evaluate_texts(texts, recipe.score.metrics, language, resamples=resamples)[0]
