"""How far a score may be trusted: sacrebleu's bootstrap and its paired tests between systems.

Confidence intervals resample the sentences (Koehn 2004). The paired tests ask how often chance alone would set two
systems as far apart as they are: paired bootstrap (Koehn 2004), approximate randomisation (Riezler and Maxwell 2005).
The seed is sacrebleu's, so that the same files give the same numbers as its own program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from nmt.score.metric import Interval, Metric, Score, check_counts, open_references

Test = Literal["bootstrap", "ar"]
SAMPLES: dict[Test, int] = {"bootstrap": 1000, "ar": 10_000}
TESTS: dict[Test, str] = {"bootstrap": "paired bootstrap", "ar": "approximate randomisation"}
LEVEL = 0.05


@dataclass(frozen=True)
class Paired:
    """One metric's comparison of the first system (the baseline) with each of the others.

    `scores` have intervals where the test is a bootstrap. `p_values` has None for the baseline, and for a system that
    wrote the very same lines: sacrebleu gives such a copy the smallest p there is.
    """

    metric: str
    signature: str
    scores: tuple[float, ...]
    intervals: tuple[Interval | None, ...]
    p_values: tuple[float | None, ...]


def score_with_interval(
    metric: Metric, hypotheses: Sequence[str], references: Sequence[Sequence[str]], samples: int
) -> Score:
    """`metric.score` with a 95 % interval from `samples` resamples of the sentences. Raises as `metric.score` does."""
    from sacrebleu.significance import _bootstrap_resample

    check_counts(hypotheses, references)
    sacre = metric.corpus
    try:  # what corpus_score does, but for the types of the resamples' scores
        stats = sacre._extract_corpus_statistics(list(hypotheses), open_references(references))
        result = sacre._aggregate_and_compute(stats)
        sacre.n_bootstrap = samples
        sacre.seed, resamples = _bootstrap_resample(stats, sacre, samples)
        result.estimate_ci(_of_one_type(resamples))
        signature = str(sacre.get_signature())
    finally:
        sacre.n_bootstrap = sacre.seed = None  # sacrebleu keeps them for its next signature
    interval = Interval(float(result._mean), float(result._ci), signature)
    return replace(metric.describe(result), interval=interval)


def _of_one_type(resamples: Sequence[Any]) -> Sequence[Any]:
    """Scores that have a mean: numpy's numbers, among which chrF and TER say Python's 0.0 of texts without a match."""
    import numpy as np

    if any(isinstance(resample.score, np.float32) for resample in resamples):
        for resample in resamples:
            resample.score = np.float32(resample.score)
    return resamples


def compare(
    metric: Metric,
    systems: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    test: Test,
    samples: int = 0,
) -> Paired:
    """Test each of `systems` against the first one. `samples`: resamples or trials; 0 is sacrebleu's number.

    Raises DataError when counts differ.
    """
    from sacrebleu.significance import PairedTest

    for hypotheses in systems:
        check_counts(hypotheses, references)
    paired = PairedTest(
        [(str(i), list(hypotheses)) for i, hypotheses in enumerate(systems)],
        {"": metric.corpus},
        open_references(references),  # type: ignore[arg-type]  # None is a reference that a sentence lacks
        test_type="bs" if test == "bootstrap" else "ar",
        n_samples=samples,
    )
    signatures, columns = paired()
    ((name, signature),) = signatures.items()
    results: list[Any] = list(columns[name])
    return Paired(
        name,
        str(signature),
        tuple(float(result.score) for result in results),
        tuple(None if r.mean is None else Interval(float(r.mean), float(r.ci), str(signature)) for r in results),
        tuple(
            None if list(hypotheses) == list(systems[0]) else float(result.p_value)
            for hypotheses, result in zip(systems, results, strict=True)
        ),
    )
