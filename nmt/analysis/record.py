"""What a run folder tells about itself, read without torch. Whatever is not there yet is empty."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from nmt.checkpoint import layout
from nmt.checkpoint.header import read_shapes
from nmt.corpus.lines import read_lines
from nmt.errors import DataError, ModelError, NmtError
from nmt.files import read_json
from nmt.schema import read_toml
from nmt.train.journal import joined, made_once, read_journal

STAGES = {  # the folder that holds each stage's manifest
    "preprocess": "preprocess",
    "bpe": "bpe",
    "train": "checkpoints",
    "average": "model",
    "translate": "translations",
    "score": "scores",
}


@dataclass(frozen=True)
class Line:
    """A line of a test set and its translation."""

    number: int
    """From 1."""
    source: str
    translation: str
    references: tuple[str, ...]


@dataclass(frozen=True)
class TestSet:
    """A test set as far as it has been translated."""

    __test__ = False  # no test of pytest's

    name: str
    lines: tuple[Line, ...] = ()
    problem: str = ""
    """Why there are no lines."""
    scores: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    segments: int = 0
    """The lines that were scored."""
    tag: str = ""
    """What a model for several languages or domains puts before every source."""


@dataclass(frozen=True)
class Record:
    """Everything that a run's files tell."""

    path: Path
    name: str
    recipe: Mapping[str, Any]
    recipe_text: str
    preprocess: Mapping[str, Any]
    subwords: Mapping[str, Any]
    journal: Sequence[Mapping[str, Any]]
    tests: Sequence[TestSet]
    manifests: Mapping[str, Mapping[str, Any]]
    """By stage."""
    parameters: int | None
    steps: tuple[int, ...] = field(default=())
    """The checkpoints whose mean the model is."""

    @property
    def languages(self) -> tuple[str, str]:
        """Of source and target."""
        both = self.recipe.get("languages", {})
        return str(both.get("source", "")), str(both.get("target", ""))

    def events(self, kind: str) -> list[Mapping[str, Any]]:
        """The journal's events of one kind, in order; steps and validations that were made again count once.

        Means of steps are those of ten updates, wherever training was interrupted.
        """
        kept = joined(made_once(self.journal)) if kind in ("step", "validation") else self.journal
        return [event for event in kept if event.get("event") == kind]


def read_record(path: Path) -> Record:
    """The record of the run folder `path`. Raises NmtError where it is none, ModelError for damaged files."""
    recipe_file = path / "recipe.toml"
    if not recipe_file.is_file():
        what = "is no run folder: it holds no recipe.toml" if path.is_dir() else "there is no such folder"
        raise NmtError(f"{path}: {what}", "name the folder of a run, such as runs/sample")
    recipe, text = read_toml(recipe_file)
    parameters, steps = _model(path)
    journal = path / "journal.jsonl"
    return Record(
        path=path,
        name=str(recipe.get("name", path.name)),
        recipe=recipe,
        recipe_text=text,
        preprocess=_json(path / "preprocess" / "report.json"),
        subwords=_json(path / "bpe" / "report.json"),
        journal=tuple(read_journal(journal)) if journal.is_file() else (),
        tests=tuple(_tests(path, recipe)),
        manifests={stage: found for stage, name in STAGES.items() if (found := _json(path / name / "manifest.json"))},
        parameters=parameters,
        steps=steps,
    )


def _json(path: Path) -> Mapping[str, Any]:
    data = read_json(path) if path.is_file() else {}
    return data if isinstance(data, dict) else {}


def _model(path: Path) -> tuple[int | None, tuple[int, ...]]:
    """How many weights the model has, and its steps; nothing where there is no model yet."""
    try:
        folder = layout.resolve(path)
        shapes = read_shapes(folder / layout.WEIGHTS)
        return sum(prod(shape) for shape in shapes.values()), layout.read_description(folder).origin.steps
    except ModelError:
        return None, ()


def _tests(path: Path, recipe: Mapping[str, Any]) -> Iterator[TestSet]:
    target = recipe.get("languages", {}).get("target", "")
    scored = {entry.get("name"): entry for entry in _json(path / "scores" / "scores.json").get("sets", [])}
    for i, settings in enumerate(recipe.get("data", {}).get("test", []), 1):
        name = settings.get("name", f"test{i}")
        entry = scored.get(name, {})
        segments = entry.get("segments", 0)
        scores, warnings = tuple(entry.get("scores", ())), tuple(entry.get("warnings", ()))
        try:
            language = settings.get("target_language") or target
            lines = _lines(path / "translations" / f"{name}.{language}.jsonl", settings)
            yield TestSet(name, lines, "", scores, warnings, segments, settings.get("tag") or "")
        except DataError as error:
            yield TestSet(name, (), error.problem, scores, warnings, segments)


def _lines(translations: Path, settings: Mapping[str, Any]) -> tuple[Line, ...]:
    """The lines with their references. Raises DataError where a file is missing or they are out of step."""
    if not translations.is_file():
        raise DataError("not translated yet")
    records = [json.loads(line) for line in read_lines(translations)]
    named = settings.get("target", [])
    files = [named] if isinstance(named, str) else list(named)
    references = [list(read_lines(Path(file), "replace")) for file in files]
    if any(len(lines) != len(records) for lines in references):
        raise DataError("the references have changed since: they have another number of lines")
    return tuple(
        Line(number, str(record["source"]), str(record["translation"]), columns)
        for number, (record, columns) in enumerate(zip(records, zip(*references, strict=True), strict=True), 1)
    )
