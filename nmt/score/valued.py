"""A metric whose value of each line was found out by another program: intervals, tests and groups are sacrebleu's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sacrebleu.metrics.base import Metric as SacreMetric
from sacrebleu.metrics.base import Score as SacreScore
from sacrebleu.metrics.base import Signature

from nmt.score.metric import Metric


class Valued(str):
    """A line that knows what was said of it, whichever lines stand beside it and however often it occurs."""

    value: float

    def __new__(cls, line: str, value: float) -> Valued:
        """The text `line` with its value."""
        made = super().__new__(cls, line)
        made.value = value
        return made


@dataclass(frozen=True)
class GivenConfig:
    """Stands among the configs of metrics; its lines have to be Valued."""

    name: str
    model: str
    version: str
    """Of the program."""
    references: int
    """How many the model reads."""
    details: dict[str, Any] = field(default_factory=dict)

    def build(self, target_language: str) -> Metric:
        """The metric, the same for every language."""
        return Given(self)


class Given(Metric):
    """The mean of the lines' values."""

    digits = 4

    def __init__(self, config: GivenConfig) -> None:
        super().__init__(_Mean(config), None)
        self.told = config.details

    def sentence(self, hypothesis: str, references: Sequence[str]) -> float:
        """The value that the line knows."""
        return _value(hypothesis)

    def details(self, result: Any) -> dict[str, Any]:
        """What there is to know of the model."""
        return self.told


def _value(line: str) -> float:
    assert isinstance(line, Valued)
    return line.value


class _Signature(Signature):
    def __init__(self, args: dict[str, Any]) -> None:
        config: GivenConfig = args["config"]
        super().__init__({**args, "num_refs": config.references})
        self.info.update({"model": config.model, "version": config.version})


class _Mean(SacreMetric):
    """For each line its value and 1: the sums of both give the mean of any sample."""

    _SIGNATURE_TYPE = _Signature

    def __init__(self, config: GivenConfig) -> None:
        super().__init__()
        self.config = config

    def _extract_corpus_statistics(self, hypotheses: Sequence[str], references: Any) -> list[list[float]]:
        return [[_value(line), 1.0] for line in hypotheses]

    def _aggregate_and_compute(self, stats: Any) -> SacreScore:
        return self._compute_score_from_stats([sum(column) for column in zip(*stats, strict=True)])

    def _compute_score_from_stats(self, stats: Any) -> SacreScore:
        return SacreScore(self.config.name, float(stats[0] / stats[1]))

    def _preprocess_segment(self, sent: str) -> str:
        return sent

    def _extract_reference_info(self, refs: Any) -> dict[str, Any]:
        return {}

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: Any) -> list[float]:
        return [_value(hypothesis), 1.0]
