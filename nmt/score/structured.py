"""A study as one JSON object, values unrounded."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from nmt.score.breakdown import Breakdown
from nmt.score.faults import summary
from nmt.score.frequency import FrequencyGroup
from nmt.score.marked import plain
from nmt.score.metric import Interval
from nmt.score.report import result_as_json
from nmt.score.significance import TESTS, Paired
from nmt.score.study import Study


def as_json(study: Study) -> dict[str, Any]:
    """Everything that was asked. A single system has its scores at the top, several have a list `systems`."""
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
