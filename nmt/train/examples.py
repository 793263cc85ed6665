"""Validation translations beside their sources and references: a table of text for each validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from nmt.checkpoint.layout import step_name
from nmt.corpus.lines import one_line
from nmt.files import write_text_whole
from nmt.search.control.request import Request
from nmt.train.validate import Held

SUFFIX = ".tsv"


def table_of(folder: Path, step: int) -> Path:
    """Where the translations of the validation after update `step` lie."""
    return folder / f"{step_name(step)}{SUFFIX}"


def write_examples(
    folder: Path, step: int, sets: Sequence[Held], translations: Mapping[str, Sequence[str]], count: int
) -> Path | None:
    """The first `count` lines of every set as tab-separated columns under a header; nothing where there are none.

    With several sets their names are the first column. Raises OutputError.
    """
    several = len(sets) > 1
    heads = ["set"] * several + ["source", "reference", "translation"]
    rows = [
        [held.name] * several + [_text(source), reference, translation]
        for held in sets
        for source, reference, translation in zip(
            held.sources[:count], held.references[:count], translations.get(held.name, ())[:count], strict=False
        )
    ]
    if not rows:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    path = table_of(folder, step)
    write_text_whole(path, "".join("\t".join(map(_cell, row)) + "\n" for row in [heads, *rows]))
    return path


def rewind_examples(folder: Path, validated: int) -> None:
    """Remove what was written by validations after update `validated`, which are made again, and what was cut off."""
    for path in folder.glob(f"step-*{SUFFIX}"):
        if path.name > table_of(folder, validated).name:
            _remove(path)
    for path in folder.glob(".*.partial"):
        _remove(path)


def _remove(path: Path) -> None:
    with suppress(OSError):  # a table that stays harms nothing
        path.unlink(missing_ok=True)


def _text(source: str | Request) -> str:
    return source.source if isinstance(source, Request) else source


def _cell(text: str) -> str:
    """Text that ends neither its column nor its line."""
    return one_line(text).replace("\t", " ")
