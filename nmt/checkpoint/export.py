"""Write a model for another program, whole or not at all.

A format is a file of nmt/checkpoint/formats with a function

    write(folder, source, description, model, quantization) -> None

that fills the empty `folder` from the model folder `source`, or raises ModelError naming what the format lacks, and
with `QUANTIZATIONS`, the names that `quantization` may have there.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nmt.checkpoint import layout
from nmt.checkpoint.layout import Description
from nmt.corpus.lines import read_lines
from nmt.errors import NmtError, OutputError
from nmt.events import Caution, Event, Notice
from nmt.files import whole_folder, write_json

FORMATS = {
    "ctranslate2": "nmt.checkpoint.formats.ctranslate2",
    "huggingface": "nmt.checkpoint.formats.huggingface",
    "safetensors": "nmt.checkpoint.formats.safetensors",
}
RECORD = "export.json"  # what was exported, and the sign that a folder may be replaced by another export


def export(
    model: Path, output: Path, to: str, quantization: str = "none", verify: Path | None = None, least: float = 90.0
) -> Iterator[Event]:
    """Make `output` a folder of the format `to`, complete in itself, from the model that `model` means.

    `verify`: source lines on which an export for CTranslate2 is compared with the model before it is there; `least`:
    the percentage of them that must have the same greedy translation. Raises ModelError for a model that the format
    cannot express or that is damaged, or from which the export differs; OutputError when `output` holds something else
    or cannot be written, NmtError when the format's package is not installed.
    """
    from nmt.checkpoint.load import load_model  # loads torch

    form = _format(to)
    if quantization not in form.QUANTIZATIONS:
        raise NmtError(
            f"--quantization {quantization}: {to} has {', '.join(form.QUANTIZATIONS)} only", "leave --quantization out"
        )
    source = layout.resolve(model)
    _check_free(output, source)
    description, loaded = load_model(source)
    if to != "safetensors":
        yield from _cautions(description)
    with whole_folder(output) as partial:
        form.write(partial, source, description, loaded, quantization)
        record = {"to": to, "quantization": quantization, "description": description.model_dump(mode="json")}
        write_json(partial / RECORD, record)
        if verify:
            yield from _proof(source, partial, verify, least, quantization)
    yield Notice(f"exported {source} to {output} ({to}{'' if quantization == 'none' else ', ' + quantization})")


def _proof(source: Path, exported: Path, text: Path, least: float, quantization: str) -> Iterator[Event]:
    from nmt.checkpoint.load import load_translator
    from nmt.checkpoint.verify import prove

    found = prove(load_translator(source, "cpu"), exported, read_lines(text), least, quantization)
    yield Notice(f"{text}: {found}")


def _format(name: str) -> Any:
    """The module of a format, which may need a package of its own."""
    if name not in FORMATS:
        raise NmtError(f"format {name!r} is none of {', '.join(FORMATS)}", "name one of these")
    try:
        return importlib.import_module(FORMATS[name])
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "nmt":
            raise
        raise NmtError(
            f"format {name} needs the package {error.name}, which is not installed", f'pip install "nmt[{name}]"'
        ) from error


def _check_free(output: Path, source: Path) -> None:
    """Raises OutputError unless `output` is missing, empty, or an export made before."""
    if not output.exists() or (output / RECORD).is_file() and output.resolve() != source.resolve():
        return
    if not output.is_dir() or any(output.iterdir()):
        raise OutputError(f"{output}: is there and is not an export; it is not replaced", "choose another name")


def _cautions(description: Description) -> Iterator[Event]:
    """What the other program does not do as this one does."""
    penalty, text = description.translate.length_penalty, description.text
    if penalty.startswith("gnmt:"):
        yield Caution(
            f"length penalty {penalty} is not known outside; average:{penalty.partition(':')[2]} is set in its place, "
            "which prefers other lengths"
        )
    if text.moses is not None:
        yield Caution("the model expects text in Moses mode; whoever uses the export has to prepare it, see README.md")
