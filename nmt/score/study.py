"""Everything that `nmt score` can be asked about a test set, computed; nmt/score/sections.py shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.corpus.lines import read_lines
from nmt.errors import DataError
from nmt.score.breakdown import Breakdown, Side, by_length, by_tag
from nmt.score.config import BleuConfig
from nmt.score.evaluate import Result, evaluate_texts
from nmt.score.faults import Finding, find
from nmt.score.frequency import FrequencyGroup, by_frequency
from nmt.score.metric import Buildable
from nmt.score.significance import SAMPLES, Paired, Test, compare
from nmt.score.texts import Texts
from nmt.score.worst import Shown, choose


@dataclass(frozen=True)
class Questions:
    """What is asked beside the scores. `samples` 0 is each method's own number."""

    sentences: bool = False
    confidence: bool = False
    test: Test | None = None
    samples: int = 0
    by: tuple[str, ...] = ()
    """length, source-length, frequency, or the name of a file with a tag a line."""
    training: Path | None = None
    """The target side of the training text, for by frequency."""
    worst: int = 0
    check: bool = False


@dataclass(frozen=True)
class Study:
    """The answers; what was not asked for is empty."""

    texts: Texts
    results: tuple[Result, ...]
    paired: tuple[Paired, ...] = ()
    test: Test | None = None
    breakdowns: tuple[Breakdown, ...] = ()
    frequencies: tuple[FrequencyGroup, ...] = ()
    worst: tuple[Shown, ...] = ()
    findings: tuple[tuple[Finding, ...], ...] | None = None
    """For each system what the checks found; None when they were not asked for."""


def study(texts: Texts, metrics: Sequence[Buildable], language: str, asked: Questions) -> Study:
    """Score `texts` in `language` (or "") and answer what is `asked`.

    Raises DataError when a test has no second system, when a file that `asked` names cannot be read or has another
    number of lines, and when a tokenizer is not installed.
    """
    if asked.test and len(texts.systems) < 2:
        raise DataError("a paired test compares systems, and there is one", "name another with --input FILE")
    resamples = (asked.samples or SAMPLES["bootstrap"]) if asked.confidence else 0
    results = evaluate_texts(texts, metrics, language, sentences=asked.sentences, resamples=resamples)
    built = [metric.build(language) for metric in metrics]
    test = asked.test
    paired = [compare(metric, texts.systems, texts.references, test, asked.samples) for metric in built] if test else []
    breakdowns = []
    for by in asked.by:
        if by in {"length", "source-length"}:
            side: Side = "reference" if by == "length" else "source"
            breakdowns.append(by_length(texts, built, language, side))
        elif by != "frequency":
            breakdowns.append(by_tag(texts, built, by))
    return Study(
        texts,
        tuple(results),
        tuple(paired),
        test,
        tuple(breakdowns),
        _frequencies(texts, metrics, language, asked) if "frequency" in asked.by else (),
        tuple(choose(texts, built[0], asked.worst)) if asked.worst else (),
        tuple(tuple(find(texts, i)) for i in range(len(texts.systems))) if asked.check else None,
    )


def _frequencies(
    texts: Texts, metrics: Sequence[Buildable], language: str, asked: Questions
) -> tuple[FrequencyGroup, ...]:
    """Words are those of BLEU's tokenizer."""
    from nmt.score.bleu import Bleu

    if asked.training is None:
        raise DataError("the training text is not known", "name its target side with --training FILE")
    config = next((m for m in metrics if isinstance(m, BleuConfig)), BleuConfig())
    bleu = config.build(language)
    assert isinstance(bleu, Bleu)
    return by_frequency(texts, read_lines(asked.training, "replace"), bleu.words)
