"""Scores of a test set by the length of its sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nmt.analysis.record import Line
from nmt.corpus.lines import is_blank
from nmt.score.languages import UNSPACED, base
from nmt.score.metric import Metric, Score

BUCKETS = 5
FEWEST = 8  # lines in a bucket: the score of fewer says nothing


@dataclass(frozen=True)
class Bucket:
    """Sources of `shortest` to `longest` words, and the score of their translations as a set of its own."""

    shortest: int
    longest: int
    lines: int
    score: Score


def length(text: str, language: str) -> int:
    """Words between spaces; characters where words have no spaces."""
    return len("".join(text.split())) if base(language) in UNSPACED else len(text.split())


def buckets(lines: Sequence[Line], language: str, metric: Metric) -> list[Bucket]:
    """Up to BUCKETS buckets of about equal size, short sources first. Lines of one length are in one bucket."""
    lengths = {line.number: length(line.source, language) for line in lines}
    ordered = sorted((line for line in lines if not is_blank(line.source)), key=lambda line: lengths[line.number])
    size = max(len(ordered) / BUCKETS, FEWEST)
    groups: list[list[Line]] = []
    for line in ordered:
        full = groups and len(groups[-1]) >= size
        if not groups or (full and lengths[groups[-1][-1].number] != lengths[line.number]):
            groups.append([])
        groups[-1].append(line)
    if len(groups) > 1 and len(groups[-1]) < FEWEST:
        groups[-2:] = [groups[-2] + groups[-1]]
    return [
        Bucket(lengths[group[0].number], lengths[group[-1].number], len(group), corpus_score(group, metric))
        for group in groups
    ]


def corpus_score(lines: Sequence[Line], metric: Metric) -> Score:
    """The metric over these lines."""
    references = [list(column) for column in zip(*(line.references for line in lines), strict=True)]
    return metric.score([line.translation for line in lines], references)
