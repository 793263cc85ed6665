"""The lines to read first: where a system is worst, or where two systems differ most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nmt.corpus.lines import is_blank, one_line
from nmt.score.marked import Part, compare
from nmt.score.metric import Metric
from nmt.score.texts import Texts


@dataclass(frozen=True)
class Shown:
    """A line (from 1), the value of each system in it, and named texts with their differences marked."""

    line: int
    values: tuple[float, ...]
    texts: tuple[tuple[str, tuple[Part, ...]], ...]


def choose(texts: Texts, metric: Metric, count: int) -> list[Shown]:
    """Up to `count` lines: the worst of a single system, or those in which the first two systems differ most.

    With a single system, marks tell it from the reference it is most like; with two, the one from the other.
    """
    columns = [
        [metric.sentence(line, texts.referred(i)) for i, line in enumerate(lines)] for lines in texts.systems[:2]
    ]
    if len(columns) > 1:
        keys = [-abs(a - b) for a, b in zip(*columns, strict=True)]
        chosen = [i for i in _order(keys) if texts.systems[0][i] != texts.systems[1][i]]
    else:
        chosen = _order([value if metric.higher_is_better else -value for value in columns[0]])
    return [_shown(texts, metric, i, tuple(column[i] for column in columns)) for i in chosen[:count]]


def _order(keys: Sequence[float]) -> list[int]:
    return sorted(range(len(keys)), key=lambda i: (keys[i], i))


def _shown(texts: Texts, metric: Metric, i: int, values: tuple[float, ...]) -> Shown:
    rows: list[tuple[str, list[Part]]] = []
    if texts.source is not None:
        rows.append(("source", [(texts.source[i], "")]))
    own = [lines[i] for lines in texts.systems[:2]]
    if len(own) == 1:
        reference, hypothesis = compare(_nearest(metric, own[0], texts.referred(i)), own[0])
        rows += [("reference", reference), (texts.names[0], hypothesis)]
    else:
        rows += [("reference", [(line, "")]) for line in texts.referred(i) if not is_blank(line)]
        rows += zip(texts.names, compare(*own), strict=False)
    clean = ((name, tuple((one_line(text), mark) for text, mark in parts)) for name, parts in rows)
    return Shown(i + 1, values, tuple(clean))


def _nearest(metric: Metric, hypothesis: str, references: Sequence[str]) -> str:
    """The reference by which `hypothesis` scores best."""
    present = [line for line in references if not is_blank(line)] or list(references)[:1]
    if len(present) == 1:
        return present[0]
    best = max if metric.higher_is_better else min
    return best(present, key=lambda line: metric.sentence(hypothesis, [line]))
