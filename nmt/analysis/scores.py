"""The table of scores of one run, or of several side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nmt.analysis.markup import Markup, join, table, tag
from nmt.analysis.record import Record
from nmt.score.metric import Interval
from nmt.score.report import value
from nmt.wording import counted

INTERVALS = "In brackets: mean and half of the interval that holds 95 % of the scores of resampled lines."


def scores(records: Sequence[Record], names: Sequence[str]) -> Markup:
    """A row for each test set, metric and signature; the better of several runs stands out."""
    found: dict[tuple[str, str, str], dict[int, Mapping[str, Any]]] = {}
    for i, record in enumerate(records):
        for test in record.tests:
            label = f"{test.name} ({counted(test.segments, 'line')})" if test.segments else test.name
            for score in test.scores:
                found.setdefault((label, score["name"], score["signature"]), {})[i] = score
    rows = []
    for (label, metric, signature), by_run in found.items():
        sign = 1 if next(iter(by_run.values())).get("higher_is_better", True) else -1
        best = max(sign * score["score"] for score in by_run.values())
        cells = [_cell(by_run.get(i), sign, best if len(by_run) > 1 else None) for i in range(len(records))]
        rows.append([label, metric + ("" if sign > 0 else " (lower is better)"), *cells, tag("code", signature)])
    if not rows:
        return Markup()
    heads = names if len(records) > 1 else ["score"]
    told = any("confidence" in score for by_run in found.values() for score in by_run.values())
    notes = [tag("li", f"{test.name}: {text}") for record in records for test in record.tests for text in test.warnings]
    return join(
        [
            table(["test set", "metric", *heads, "signature"], rows, numeric=range(2, 2 + len(records))),
            tag("p", INTERVALS, class_="soft") if told else "",
            tag("ul", *notes, class_="soft") if notes else "",
        ]
    )


def _cell(score: Mapping[str, Any] | None, sign: int, best: float | None) -> object:
    """A value with its interval, where it has one; the best of several is strong."""
    if score is None:
        return "–"
    found = score.get("confidence")
    interval = Interval(found["mean"], found["half_width"], found["signature"]) if found else None
    text = value(score["score"], interval)
    return tag("strong", text) if best is not None and sign * score["score"] == best else text
