"""A study as lines of text: scores first, then tables of whatever else was asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from nmt.score.breakdown import Breakdown
from nmt.score.faults import summary
from nmt.score.frequency import FrequencyGroup
from nmt.score.marked import Part
from nmt.score.metric import Score
from nmt.score.report import output, value
from nmt.score.significance import LEVEL, TESTS, Paired
from nmt.score.structured import as_json
from nmt.score.study import Study
from nmt.score.tables import FORMATS, Table
from nmt.wording import counted

Row = str | tuple[Part, ...]
"""A line of output; one in parts has differences that may be coloured."""


def lines(study: Study, form: str, details: bool = False) -> Iterator[Row]:
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
        rows.append((study.texts.labels[i], *cells))
    notes = [f"{score.name}: {_signature(study, m)}" for m, score in enumerate(first.scores)]
    if study.test == "ar":
        notes += [f"{s.name}, mean ± …: {s.interval.signature}" for s in first.scores if s.interval]
    if study.paired:
        notes.append(
            f"p: by {TESTS[study.test or 'ar']}, how often chance alone would set a system as far apart from "
            f"{study.texts.labels[0]}; * up to {LEVEL}"
        )
    if any(score.interval for score in first.scores) or any(p.intervals[0] for p in study.paired):
        notes.append("(mean ± half of the 95 % confidence interval), by resampling the sentences")
    return Table("", head, tuple(rows), tuple(notes))


def details_table(study: Study) -> Table:
    """What the metrics tell beside the value."""
    named = zip(study.texts.labels, study.results, strict=True)
    rows = [(name, score.name, _details(score.details)) for name, result in named for score in result.scores]
    return Table("details", ("system", "metric", "parts"), tuple(rows))


def breakdown_table(study: Study, breakdown: Breakdown) -> Table:
    """A row for each group of lines, a column for each metric and system."""
    names = [score.name for score in study.results[0].scores]
    labels = study.texts.labels if len(study.results) > 1 else ("",)
    head = [f"{label} {name}".strip() for name in names for label in labels]
    rows = tuple(
        (
            group.name,
            str(group.lines),
            *(value(s.value, digits=s.digits) for metric in zip(*group.scores, strict=True) for s in metric),
        )
        for group in breakdown.groups
    )
    return Table(f"by {breakdown.title}", ("group", "lines", *head), rows)


def frequency_table(study: Study, groups: tuple[FrequencyGroup, ...]) -> Table:
    """F1 of words by their frequency in the training text, with precision and recall of a single system."""
    if len(study.results) == 1:
        head = ["precision", "recall", "F1"]
        values: list[tuple[float, ...]] = [(s.precision, s.recall, s.f1) for group in groups for s in group.words]
    else:
        head = [f"{label} F1" for label in study.texts.labels]
        values = [tuple(s.f1 for s in group.words) for group in groups]
    rows = tuple(
        (group.name, str(group.words[0].wanted), *(f"{number:.1f}" for number in row))
        for group, row in zip(groups, values, strict=True)
    )
    return Table("words by frequency in the training text", ("times", "words", *head), rows)


def findings_table(study: Study, number: int) -> Table:
    """The lines that the checks named in the translations of a system, and how many there are of each kind."""
    found = (study.findings or ())[number]
    rows = tuple((str(f.line), f.check, f.detail) for f in found)
    counts = ", ".join(f"{check} {count}" for check, count in summary(found).items())
    named = len({f.line for f in found})
    against = "their source" if study.texts.source is not None else "their reference"
    lines = counted(len(study.texts), "line")
    total = f"{named:,} of {lines}: {counts}" if found else f"nothing in {lines}"
    title = f"checks of {study.texts.names[number]}, lines held against {against}"
    return Table(title, ("line", "check", "what"), rows, (total,))


def _cell(score: Score, paired: Paired | None, system: int) -> str:
    interval = paired.intervals[system] if paired and not score.interval else score.interval
    text = value(score.value, interval, score.digits)
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


def _worst(study: Study, indent: str) -> Iterator[Row]:
    first = study.results[0].scores[0]
    metric = first.name
    several = len(study.results) > 1
    labels = dict(zip(study.texts.names, study.texts.labels, strict=True))
    yield indent + (
        f"lines that differ most by {metric}: [-only the first-] {{+only the second+}}"
        if several
        else f"worst lines by {metric}: [-only the reference-] {{+only the translation+}}"
    )
    for shown in study.worst:
        yield indent.rstrip()
        values = " and ".join(value(number, digits=first.digits) for number in shown.values)
        yield f"{indent}line {shown.line}, {metric} {values}"
        rows = [(labels.get(name, name), parts) for name, parts in shown.texts]
        width = max(len(label) for label, _ in rows)
        for label, parts in rows:
            yield ((f"{indent}  {label.ljust(width)}  ", ""), *parts)
