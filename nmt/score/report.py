"""How scores are shown and kept: a line for each metric, and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from nmt.score.evaluate import Result
from nmt.score.metric import Interval, Score


def line(score: Score) -> str:
    """`BLEU 34.12  nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0`."""
    signature = score.interval.signature if score.interval else score.signature
    return f"{score.name} {value(score.value, score.interval, score.digits)}  {signature}"


def value(number: float, interval: Interval | None = None, digits: int = 2) -> str:
    """`34.12`, or `34.12 (34.09 ± 1.02)` with the mean and half of the 95 % confidence interval."""
    shown = f" ({interval.mean:.{digits}f} ± {interval.half_width:.{digits}f})" if interval else ""
    return f"{number:.{digits}f}{shown}"


def as_json(score: Score) -> dict[str, Any]:
    """Everything about `score`, the value unrounded, as plain JSON values."""
    return {
        "name": score.name,
        "score": score.value,
        "signature": score.signature,
        "higher_is_better": score.higher_is_better,
        **score.details,
        **({"confidence": {"level": 95, **asdict(score.interval)}} if score.interval else {}),
    }


def result_as_json(result: Result) -> dict[str, Any]:
    """A whole result: files, number of segments, every score, warnings, and sentence scores where there are any."""
    data: dict[str, Any] = {
        "hypothesis": result.hypothesis,
        "references": list(result.references),
        "segments": result.segments,
        "scores": [as_json(score) for score in result.scores],
        "warnings": list(result.cautions),
    }
    if result.sentences:
        names = [score.name for score in result.scores]
        data["sentences"] = [dict(zip(names, row, strict=True)) for row in result.sentences]
    return data


def output(result: Result, as_object: bool = False) -> Iterator[str]:
    """The lines of `nmt score`: a line for each metric, or for each sentence where asked for, or one JSON object."""
    if as_object:
        yield from json.dumps(result_as_json(result), ensure_ascii=False, indent=2).split("\n")
    elif result.sentences:
        digits = [score.digits for score in result.scores]
        for row in result.sentences:
            yield "\t".join(value(number, digits=places) for number, places in zip(row, digits, strict=True))
    else:
        for score in result.scores:
            yield line(score)


def rows(sets: Iterable[dict[str, Any]]) -> list[tuple[str, str, str, str]]:
    """The table of scores, from the `sets` of a scores.json: test set, metric, value, signature."""
    return [
        (entry["name"], score["name"], f"{score['score']:.2f}", score["signature"])
        for entry in sets
        for score in entry["scores"]
    ]


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """`rows` as lines of aligned columns."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
