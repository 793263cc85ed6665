"""A study as tables and as JSON: scores first, then whatever else was asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from nmt.score.breakdown import Breakdown
from nmt.score.faults import summary
from nmt.score.frequency import FrequencyGroup
from nmt.score.marked import Part, plain
from nmt.score.metric import Interval, Score
from nmt.score.report import output, result_as_json, value
from nmt.score.significance import LEVEL, Paired
from nmt.score.study import Study
from nmt.score.tables import FORMATS, Table

TESTS = {"bootstrap": "paired bootstrap", "ar": "approximate randomisation"}
Shown = str | tuple[Part, ...]
"""A line of output; one in parts has differences that may be coloured."""


def lines(study: Study, form: str, details: bool = False) -> Iterator[Shown]:
    """The study in one of tables.FORMATS, or as "json"."""
    if form == "json":
        yield from json.dumps(as_json(study), ensure_ascii=False, indent=2).split("\n")
        return
    if study.results[0].sentences:
        yield from ("\t".join(row) for row in zip(*(output(result) for result in study.results), strict=True))
    elif form == "text" and len(study.results) == 1:
        yield from output(study.results[0])
    else:
        yield from FORMATS[form](scores_table(study))
    for table in _tables(study, details):
        yield ""
        yield from FORMATS[form](table)
    if study.worst:
        yield ""
        yield from _worst(study, {"markdown": "    ", "latex": "% "}.get(form, ""))


def _tables(study: Study, details: bool) -> Iterator[Table]:
    if details:
        yield details_table(study)
    for breakdown in study.breakdowns:
        yield breakdown_table(study, breakdown)
    if study.frequencies:
        yield frequency_table(study, study.frequencies)
    for number in range(len(study.findings or ())):
        yield findings_table(study, number)


def scores_table(study: Study) -> Table:
    """A row for each system and a column for each metric; the signatures are notes."""
    first = study.results[0]
    head = ("system", *(score.name for score in first.scores))
    rows = []
    for i, result in enumerate(study.results):
        cells = [_cell(score, study.paired[m] if study.paired else None, i) for m, score in enumerate(result.scores)]
        rows.append((result.hypothesis, *cells))
    notes = [f"{score.name}: {_signature(study, m)}" for m, score in enumerate(first.scores)]
    if study.test == "ar":
        notes += [f"{s.name}, mean ± …: {s.interval.signature}" for s in first.scores if s.interval]
    if study.paired:
        notes.append(
            f"p: by {TESTS[study.test or 'ar']}, how often chance alone would set a system as far apart from "
            f"{first.hypothesis}; * up to {LEVEL}"
        )
    if any(score.interval for score in first.scores) or any(p.intervals[0] for p in study.paired):
        notes.append("(mean ± half of the 95 % confidence interval), by resampling the sentences")
    return Table("", head, tuple(rows), tuple(notes))


def details_table(study: Study) -> Table:
    """What the metrics tell beside the value."""
    rows = [(r.hypothesis, s.name, _details(s.details)) for r in study.results for s in r.scores]
    return Table("details", ("system", "metric", "parts"), tuple(rows))


def breakdown_table(study: Study, breakdown: Breakdown) -> Table:
    """A row for each group of lines, a column for each system and metric."""
    names = [score.name for score in study.results[0].scores]
    several = len(study.results) > 1
    head = [f"{result.hypothesis} {name}" if several else name for result in study.results for name in names]
    rows = tuple(
        (group.name, str(group.lines), *(f"{score.value:.2f}" for scores in group.scores for score in scores))
        for group in breakdown.groups
    )
    return Table(f"by {breakdown.title}", ("group", "lines", *head), rows)


def frequency_table(study: Study, groups: tuple[FrequencyGroup, ...]) -> Table:
    """F1 of words by their frequency in the training text, with precision and recall of a single system."""
    if len(study.results) == 1:
        head = ["precision", "recall", "F1"]
        cells = [[f"{score.precision:.1f} {score.recall:.1f} {score.f1:.1f}"] for g in groups for score in g.words]
        values = [cell[0].split() for cell in cells]
    else:
        head = [f"{result.hypothesis} F1" for result in study.results]
        values = [[f"{score.f1:.1f}" for score in group.words] for group in groups]
    rows = tuple((g.name, str(g.words[0].wanted), *row) for g, row in zip(groups, values, strict=True))
    return Table("words by frequency in the training text", ("times", "words", *head), rows)


def findings_table(study: Study, number: int) -> Table:
    """The lines that the checks named in the translations of a system, and how many there are of each kind."""
    found = (study.findings or ())[number]
    rows = tuple((str(f.line), f.check, f.detail) for f in found)
    counts = ", ".join(f"{check} {count}" for check, count in summary(found).items())
    named = len({f.line for f in found})
    against = "their source" if study.texts.source is not None else "their reference"
    total = f"{named} of {len(study.texts)} lines: {counts}" if found else f"nothing in {len(study.texts)} lines"
    title = f"checks of {study.texts.names[number]}, lines held against {against}"
    return Table(title, ("line", "check", "what"), rows, (total,))


def as_json(study: Study) -> dict[str, Any]:
    """Everything, values unrounded. A single system has its scores at the top, several have a list `systems`."""
    results = [result_as_json(result) for result in study.results]
    data: dict[str, Any] = results[0] if len(results) == 1 else {"systems": results}
    if study.paired:
        data["test"] = {"kind": TESTS[study.test or "ar"], "baseline": study.texts.names[0]}
        data["paired"] = [_paired_json(study, paired) for paired in study.paired]
    if study.breakdowns:
        data["by"] = [_breakdown_json(study, breakdown) for breakdown in study.breakdowns]
    if study.frequencies:
        data["by_frequency"] = [_frequency_json(study, group) for group in study.frequencies]
    if study.worst:
        data["worst"] = [
            {"line": s.line, "scores": list(s.values), "texts": {name: plain(parts) for name, parts in s.texts}}
            for s in study.worst
        ]
    if study.findings is not None:
        data["checks"] = {
            name: {"summary": summary(found), "findings": [asdict(f) for f in found]}
            for name, found in zip(study.texts.names, study.findings, strict=True)
        }
    return data


def _cell(score: Score, paired: Paired | None, system: int) -> str:
    interval = paired.intervals[system] if paired and not score.interval else score.interval
    text = value(score.value, interval)
    if paired is None or system == 0:
        return text
    p = paired.p_values[system]
    return f"{text} {'the same' if p is None else f'p = {p:.4f}'}{'*' if p is not None and p <= LEVEL else ''}"


def _signature(study: Study, metric: int) -> str:
    score = study.results[0].scores[metric]
    if study.paired:
        return study.paired[metric].signature
    return score.interval.signature if score.interval else score.signature


def _details(details: dict[str, Any]) -> str:
    parts = []
    for name, item in details.items():
        shown = "/".join(f"{x:.1f}" for x in item) if isinstance(item, list) else item
        parts.append(f"{name.replace('_', ' ')} {f'{shown:.3f}' if isinstance(shown, float) else shown}")
    return ", ".join(parts)


def _worst(study: Study, indent: str) -> Iterator[Shown]:
    metric = study.results[0].scores[0].name
    several = len(study.results) > 1
    yield indent + (
        f"lines that differ most by {metric}: [-only the first-] {{+only the second+}}"
        if several
        else f"worst lines by {metric}: [-only the reference-] {{+only the translation+}}"
    )
    for shown in study.worst:
        yield indent.rstrip()
        values = " and ".join(f"{number:.2f}" for number in shown.values)
        yield f"{indent}line {shown.line}, {metric} {values}"
        width = max(len(name) for name, _ in shown.texts)
        for name, parts in shown.texts:
            yield ((f"{indent}  {name.ljust(width)}  ", ""), *parts)


def _paired_json(study: Study, paired: Paired) -> dict[str, Any]:
    systems = [
        {"system": name, "score": score, "p_value": p, **_interval_json(interval)}
        for name, score, p, interval in zip(
            study.texts.names, paired.scores, paired.p_values, paired.intervals, strict=True
        )
    ]
    return {"name": paired.metric, "signature": paired.signature, "systems": systems}


def _interval_json(interval: Interval | None) -> dict[str, Any]:
    return {} if interval is None else {"mean": interval.mean, "half_width": interval.half_width}


def _breakdown_json(study: Study, breakdown: Breakdown) -> dict[str, Any]:
    groups = [
        {
            "name": group.name,
            "lines": group.lines,
            "scores": {
                name: {score.name: score.value for score in scores}
                for name, scores in zip(study.texts.names, group.scores, strict=True)
            },
        }
        for group in breakdown.groups
    ]
    return {"title": breakdown.title, "groups": groups}


def _frequency_json(study: Study, group: FrequencyGroup) -> dict[str, Any]:
    scores = {
        name: {**asdict(score), "precision": score.precision, "recall": score.recall, "f1": score.f1}
        for name, score in zip(study.texts.names, group.words, strict=True)
    }
    return {"times": group.name, "systems": scores}
