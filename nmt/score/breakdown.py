"""Where a score comes from: the same metrics on groups of lines, by length or by a tag that each line has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

from nmt.corpus.lines import is_blank, one_line, read_lines
from nmt.errors import DataError
from nmt.score.languages import UNSPACED, base, guess_unspaced
from nmt.score.metric import Metric, Score, count_of
from nmt.score.texts import Texts

Side = Literal["reference", "source"]
BOUNDS = (0, 10, 20, 30, 40, 50, 60)
"""Lengths at which a group begins: words, or characters where a language writes no spaces (times 2)."""


@dataclass(frozen=True)
class Group:
    """Lines of one kind; `scores` has a row for each system, in the metrics' order."""

    name: str
    lines: int
    scores: tuple[tuple[Score, ...], ...]


@dataclass(frozen=True)
class Breakdown:
    """The groups in their order. Every line is in exactly one."""

    title: str
    groups: tuple[Group, ...]


def by_length(texts: Texts, metrics: Sequence[Metric], language: str, side: Side) -> Breakdown:
    """Groups of lines by the length of the first reference there is, or of the source.

    Raises DataError when the source is asked for and not given.
    """
    if side == "reference":
        lines = [next((r for r in texts.referred(i) if not is_blank(r)), "") for i in range(len(texts))]
    elif texts.source is None:
        raise DataError("the source's length is not known", "name the source with --source FILE")
    else:
        lines = texts.source
    characters = (side == "reference" and base(language) in UNSPACED) or guess_unspaced(lines) != ""
    lengths = [len("".join(line.split())) // 2 if characters else len(line.split()) for line in lines]
    scale = 2 if characters else 1
    names = range_names([bound * scale for bound in BOUNDS])
    kinds = [names[bucket(length, BOUNDS)] for length in lengths]
    unit = "characters" if characters else "words"
    return Breakdown(f"length of the {side} in {unit}", _groups(texts, metrics, kinds, names))


def by_tag(texts: Texts, metrics: Sequence[Metric], path: Path | str) -> Breakdown:
    """Groups of lines by the tag that the same line of the file at `path` holds, in the order of appearance.

    Raises DataError when the file cannot be read or has another number of lines.
    """
    tags = [one_line(line).strip() or "(no tag)" for line in read_lines(path)]
    if len(tags) != len(texts):
        raise DataError(
            f"{path} has {count_of(tags)}, {texts.names[0]} has {count_of(texts.systems[0])}; they must be equal",
            "write one tag a line: the corpus, the domain or whatever lines are to be grouped by",
        )
    return Breakdown(f"tag in {path}", _groups(texts, metrics, tags, list(dict.fromkeys(tags))))


def bucket(value: int, bounds: Sequence[int]) -> int:
    """The number of the range that `value` falls in; each range begins at one of `bounds`, which rise from 0."""
    return sum(value >= bound for bound in bounds) - 1


def range_names(bounds: Sequence[int]) -> list[str]:
    """Names of the ranges that begin at `bounds`: (0, 1, 5, 10) → 0, 1-4, 5-9, 10+."""
    names = [f"{low}" if high == low + 1 else f"{low}-{high - 1}" for low, high in pairwise(bounds)]
    return [*names, f"{bounds[-1]}+"]


def _groups(texts: Texts, metrics: Sequence[Metric], kinds: list[str], order: list[str]) -> tuple[Group, ...]:
    found = []
    for name in order:
        rows = [i for i, kind in enumerate(kinds) if kind == name]
        if not rows:
            continue
        references = [[lines[i] for i in rows] for lines in texts.references]
        scores = tuple(
            tuple(metric.score([lines[i] for i in rows], references) for metric in metrics) for lines in texts.systems
        )
        found.append(Group(name, len(rows), scores))
    return tuple(found)
