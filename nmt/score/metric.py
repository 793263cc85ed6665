"""What a metric is: hypotheses and sets of references in, a value with its signature out. All are sacrebleu's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from nmt.corpus.lines import is_blank
from nmt.errors import DataError
from nmt.wording import counted

if TYPE_CHECKING:
    from nmt.score.config import MetricConfig


@dataclass(frozen=True)
class Interval:
    """Where the value would lie on other sentences of this kind, in 95 of 100 cases: `mean` ± `half_width`."""

    mean: float
    half_width: float
    signature: str
    """The score's signature with the number of resamples (bs) and the seed."""


@dataclass(frozen=True)
class Score:
    """A value with all it takes to compute it again: the name and the signature are sacrebleu's."""

    name: str
    value: float
    signature: str
    higher_is_better: bool
    details: dict[str, Any] = field(default_factory=dict)
    interval: Interval | None = None
    digits: int = 2
    """Places after the point that are shown."""


class Buildable(Protocol):
    """What a metric is made of: a MetricConfig, or a stand-in for one."""

    def build(self, target_language: str) -> Metric:
        """The metric for text in `target_language`."""


class Metric:
    """A metric computed by sacrebleu; a new kind overrides `details` and, where lower is better, the flag.

    `corpus` and `sentence` are instances of a sacrebleu metric class, for whole sets and for single sentences.
    """

    higher_is_better = True
    digits = 2

    def __init__(self, corpus: Any, sentence: Any) -> None:
        self.corpus = corpus
        self.sentence_metric = sentence

    def score(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Score:
        """The value over the whole set. `references` holds one or several sets, each as long as `hypotheses`.

        Raises DataError when the lengths differ or there is nothing to score.
        """
        check_counts(hypotheses, references)
        return self.describe(self.corpus.corpus_score(list(hypotheses), open_references(references)))

    def describe(self, result: Any) -> Score:
        """sacrebleu's `result` as a Score, with the signature of what `corpus` has scored last."""
        signature = str(self.corpus.get_signature())
        found = Score(result.name, float(result.score), signature, self.higher_is_better, self.details(result))
        return replace(found, digits=self.digits)

    def sentence(self, hypothesis: str, references: Sequence[str]) -> float:
        """The value of one sentence against its references (not blank ones). An empty hypothesis has BLEU 0."""
        present = [line for line in references if not is_blank(line)] or list(references[:1])
        return float(self.sentence_metric.sentence_score(hypothesis, present).score)

    def details(self, result: Any) -> dict[str, Any]:
        """What sacrebleu's `result` tells beside the value, as plain JSON values."""
        return {}


def score_all(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    metrics: Sequence[MetricConfig],
    target_language: str,
) -> list[Score]:
    """One Score for each of `metrics`. `references` holds one inner list for each reference *set*.

    Raises DataError when a set has another length than `hypotheses`, or when a tokenizer is not installed.
    """
    return [metric.build(target_language).score(hypotheses, references) for metric in metrics]


def check_counts(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    hypothesis_name: str = "the hypothesis",
    reference_names: Sequence[str] = (),
) -> None:
    """Raises DataError naming both sides unless every reference set has as many lines as `hypotheses`, and any."""
    if isinstance(hypotheses, str) or not references or any(isinstance(lines, str) for lines in references):
        raise DataError(
            "references are not a list of reference sets of strings",
            "pass [references] for one reference a sentence, [first, second] for two",
        )
    names = reference_names or [f"reference set {i}" for i in range(1, len(references) + 1)]
    for name, lines in zip(names, references, strict=True):
        if len(lines) != len(hypotheses):
            raise DataError(
                f"{hypothesis_name} has {count_of(hypotheses)}, {name} has {len(lines):,}; they must be equal",
                "translate the whole source again; output line i must belong to source line i",
            )
    if not hypotheses:
        raise DataError(f"{hypothesis_name} has 0 lines: there is nothing to score", "check the file names")


def count_of(lines: Sequence[str]) -> str:
    """`1 line`, `2 lines`."""
    return counted(len(lines), "line")


def open_references(references: Sequence[Sequence[str]]) -> list[list[str | None]]:
    """`references` with None where a sentence lacks that reference: a blank line beside one that is not.

    A sentence all of whose references are blank keeps an empty first one, so that it counts as a segment.
    """
    columns: list[list[str | None]] = []
    for column in zip(*references, strict=True):
        kept = [None if is_blank(line) else line for line in column]
        columns.append(kept if any(line is not None for line in kept) else ["", *kept[1:]])
    return [list(row) for row in zip(*columns, strict=True)]


def missing_references(references: Sequence[Sequence[str]]) -> int:
    """How many lines of the reference sets count as "no reference here"."""
    return sum(line is None for row in open_references(references) for line in row)
