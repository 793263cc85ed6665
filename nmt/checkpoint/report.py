"""What a run or a model folder holds, for people, read without torch."""

from __future__ import annotations

from math import prod
from pathlib import Path

from nmt.checkpoint import layout
from nmt.checkpoint.card import NEEDED, said_of_context, tags_of
from nmt.checkpoint.header import read_shapes
from nmt.errors import ModelError
from nmt.files import sha256

Row = tuple[str, ...]


def about(model: Path) -> list[Row]:
    """Name and value of what there is to know about the folder that `model` means. Raises ModelError."""
    folder = layout.resolve(model)
    description = layout.read_description(folder)
    shapes = read_shapes(folder / layout.WEIGHTS)
    settings = description.model.model_dump(mode="json", exclude_none=True)
    origin, languages = description.origin, description.languages
    rows: list[Row] = [
        ("folder", str(folder)),
        ("languages", f"{languages.source} → {languages.target}"),
        ("parameters", f"{sum(prod(shape) for shape in shapes.values()):,} in {len(shapes)} tensors"),
        *((f"model.{key}", _value(value)) for key, value in settings.items()),
        ("vocabulary", f"{description.source_size:,} source, {description.target_size:,} target"),
        *_tags(folder, description),
        ("shared", _value(description.shared_vocabulary)),
        *((name, _intact(folder / name, digest)) for name, digest in description.vocabulary_sha256.items()),
        *([("context", said_of_context(description))] if description.context_sentences else []),
        ("longest source", f"{description.max_source_tokens} ids, end mark included"),
        *((f"text.{key}", _value(value)) for key, value in description.text.model_dump(mode="json").items()),
        *((f"translate.{key}", _value(value)) for key, value in description.translate.model_dump(mode="json").items()),
        ("steps", ", ".join(f"{step:,}" for step in origin.steps) or "unknown"),
        ("recipe", origin.name or "unknown"),
        *(
            [("started from", f"{origin.parent.name}, weights sha256 {origin.parent.weights_sha256[:16]}…")]
            if origin.parent
            else []
        ),
        ("training pairs", f"{origin.training_pairs:,}" if origin.training_pairs else "unknown"),
        ("written by", f"nmt {description.nmt}, format {description.format}"),
    ]
    return rows


def checkpoints(model: Path) -> list[Row]:
    """A row for each checkpoint of a run, headings first; nothing where `model` is a single folder."""
    folder = model / "checkpoints" if (model / "checkpoints").is_dir() else model
    found = [] if (folder / layout.DESCRIPTION).is_file() else layout.step_folders(folder)
    if not found:
        return []
    best, last = layout.pointed(folder, layout.BEST), layout.pointed(folder, layout.LAST)
    rows: list[Row] = [("checkpoint", "loss", "bleu", "chrf", "")]
    for path in found:
        measured = layout.read_validation(path) or {}
        values = (measured.get(name) for name in ("loss", "bleu", "chrf"))
        numbers = [f"{value:.3f}" if isinstance(value, int | float) else "-" for value in values]
        marks = [name for name, marked in (("best", best), ("last", last)) if marked == path]
        marks += [] if (path / layout.RESUME).is_dir() else ["cannot be gone on from"]
        rows.append((path.name, *numbers, ", ".join(marks)))
    return rows


def _tags(folder: Path, description: layout.Description) -> list[Row]:
    """The tags of the source vocabulary, where there are some and the file can be read."""
    tags = tags_of(folder, description)
    return [("tags", f"{', '.join(tags)}{NEEDED * description.needs_tag}")] if tags else []


def _intact(path: Path, digest: str) -> str:
    try:
        return (
            f"sha256 {digest[:16]}… {'as trained' if sha256(path) == digest else 'DIFFERS from the file trained with'}"
        )
    except ModelError:
        return "MISSING"


def _value(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_value(inner)}" for key, inner in value.items() if inner is not None)
    if isinstance(value, bool):
        return str(value).lower()
    return "-" if value is None else str(value)
