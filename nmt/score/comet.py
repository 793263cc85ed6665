"""COMET by its own program: the user's comet-score, in an environment of its own, from a model folder that is there.

Its checkpoints are pickles, which nothing here opens. The program is given files and a checkpoint, and is kept offline.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nmt.corpus.lines import one_line
from nmt.errors import DataError, ModelError, NmtError
from nmt.score.texts import Texts
from nmt.score.valued import GivenConfig, Valued
from nmt.wording import counted

PROGRAM = "comet-score"
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
LAST = 4  # lines of a failed program that are shown
_INSTALL = (
    "python3 -m venv comet && comet/bin/pip install unbabel-comet 'setuptools<80'; "
    "then --comet-program comet/bin/comet-score"
)
_FETCH = "name a COMET model's folder, with checkpoints/model.ckpt in it; docs/scoring.md tells how to fetch one"
_VERSION = "from importlib.metadata import version; print(version('unbabel-comet'))"


@dataclass(frozen=True)
class CometModel:
    """A model folder as COMET's publishers lay it out: checkpoints/model.ckpt, and hparams.yaml above it."""

    checkpoint: Path
    name: str
    references: bool
    """Whether it reads the reference."""
    encoder: str
    """What Hugging Face's cache must hold."""


def find_model(path: Path) -> CometModel:
    """The model that `path` means: a checkpoint, its folder, or the folder of it in Hugging Face's cache.

    Raises ModelError where there is none, or several.
    """
    if not path.exists():
        raise ModelError(f"{path}: there is no such folder; COMET's models are never fetched from here", _FETCH)
    patterns = ("checkpoints/*.ckpt", "*.ckpt", "snapshots/*/checkpoints/*.ckpt")
    found = [path] if path.is_file() else [file for pattern in patterns for file in sorted(path.glob(pattern))]
    if len(found) != 1 or found[0].suffix != ".ckpt":
        number = f"{len(found)} checkpoints" if len(found) > 1 else "no checkpoint (checkpoints/model.ckpt)"
        raise ModelError(f"{path}: holds {number}", "name one file that ends in .ckpt" if len(found) > 1 else _FETCH)
    settings = found[0].absolute().parents[1] / "hparams.yaml"
    if not settings.is_file():
        raise ModelError(f"{settings}: is missing; COMET reads it beside the checkpoint's folder", _FETCH)
    text = settings.read_text(encoding="utf-8", errors="replace")
    encoder = re.search(r"^pretrained_model:\s*(\S+)", text, re.MULTILINE)
    return CometModel(found[0].absolute(), _name(found[0]), _reads_references(text), encoder[1] if encoder else "")


def _name(checkpoint: Path) -> str:
    """The model's name: its repository's in Hugging Face's cache, otherwise its folder's."""
    parts = checkpoint.absolute().parts
    cached = next((part for part in parts if part.startswith("models--")), "")
    return cached.removeprefix("models--").replace("--", "/") or parts[-3 if parts[-2] == "checkpoints" else -2]


def _reads_references(settings: str) -> bool:
    kind = re.search(r"^class_identifier:\s*(\S+)", settings, re.MULTILINE)
    if kind and kind[1] == "referenceless_regression_metric":
        return False
    inputs = re.search(r"^input_segments:((?:\s*-\s*\w+)+)", settings, re.MULTILINE)
    return inputs is None or "ref" in re.findall(r"\w+", inputs[1])


def find_program(program: str, environment: Mapping[str, str]) -> Path:
    """Where the program lies. Raises NmtError where it is neither on the PATH nor a file that can be run."""
    found = shutil.which(program, path=environment.get("PATH", ""))
    if found is None:
        raise NmtError(f"{program}: there is no such program", _INSTALL)
    return Path(found).absolute()


def version_of(program: Path, environment: Mapping[str, str]) -> str:
    """The version of COMET that Python finds beside the program; "unknown" where there is no such Python."""
    python = program.resolve().parent / "python"
    if not python.exists():
        return "unknown"
    told = subprocess.run([python, "-c", _VERSION], capture_output=True, text=True, env=dict(environment))
    return told.stdout.strip() if told.returncode == 0 and told.stdout.strip() else "unknown"


@dataclass(frozen=True)
class Comet:
    """A model with the program that scores by it."""

    model: CometModel
    program: Path
    environment: Mapping[str, str]
    name: str
    """The program as it was asked for."""

    @classmethod
    def find(cls, model: Path, program: str, environment: Mapping[str, str], references: int) -> Comet:
        """What will score lines with so many references. Raises ModelError for the model; NmtError for the program;
        DataError with more references than it reads."""
        found = cls(find_model(model), find_program(program, environment), environment, program)
        if found.model.references and references > 1:
            raise DataError(f"COMET compares with one reference, and {references} are named", "name one of them")
        return found

    def score(self, texts: Texts) -> tuple[Texts, GivenConfig]:
        """`texts` whose lines know what COMET says of them, and the metric that reads it.

        Raises DataError without a source; NmtError where the program fails.
        """
        if texts.source is None:
            raise DataError("COMET reads the source, and there is none", "name it with --source FILE")
        values = _run(texts, texts.source, self.model, self.program, self.environment)
        systems: tuple[list[str], ...] = tuple(
            [Valued(line, value) for line, value in zip(lines, row, strict=True)]
            for lines, row in zip(texts.systems, values, strict=True)
        )
        version, references = version_of(self.program, self.environment), int(self.model.references)
        details = {"checkpoint": str(self.model.checkpoint)}
        return replace(texts, systems=systems), GivenConfig("COMET", self.model.name, version, references, details)


def _run(
    texts: Texts, source: Sequence[str], model: CometModel, program: Path, environment: Mapping[str, str]
) -> list[list[float]]:
    """The program's value of each line of each system."""
    with TemporaryDirectory(prefix="comet-") as name:
        folder = Path(name)
        systems = [_write(folder / f"system-{i + 1}", lines) for i, lines in enumerate(texts.systems)]
        files = ["--sources", _write(folder / "source", source), "--translations", *systems]
        if model.references:
            files += ["--references", _write(folder / "reference", texts.references[0])]
        output = folder / "scores.json"
        options = ["--model", str(model.checkpoint), "--to_json", str(output), "--quiet", "--only_system"]
        command = [str(program), *files, *options]
        ended = subprocess.run(command, capture_output=True, env={**environment, **OFFLINE})
        if ended.returncode or not output.is_file():
            _fail(program, ended, model)
        return _values(output, systems, len(source), program)


def _write(path: Path, lines: Sequence[str]) -> str:
    """A file whose lines are lines for everybody; its name."""
    path.write_text("".join(f"{one_line(line)}\n" for line in lines), encoding="utf-8", newline="\n")
    return str(path)


def _fail(program: Path, ended: subprocess.CompletedProcess[bytes], model: CometModel) -> None:
    told = (ended.stderr.strip() or ended.stdout.strip()).decode("utf-8", "replace")
    lines = [one_line(line).strip() for line in re.split(r"[\r\n]+", told) if line.strip()][-LAST:]
    what = f"ended with status {ended.returncode}" if ended.returncode else "wrote no scores"
    problem = f"{program} {what}: {' / '.join(lines) or 'it said nothing'}"
    encoder = f" ({shlex.quote(model.encoder)})" if model.encoder else ""
    hint = f"it runs offline: the encoder that {model.name} is built on{encoder} must lie in Hugging Face's cache"
    raise NmtError(problem, hint)


def _values(output: Path, systems: Sequence[str], count: int, program: Path) -> list[list[float]]:
    """What the JSON file tells of each system's lines. Raises NmtError where it is not what COMET 2 writes."""
    try:
        data: Any = json.loads(output.read_text(encoding="utf-8"))
        rows = [[float(line["COMET"]) for line in data[name]] for name in systems]
    except (ValueError, TypeError, KeyError) as error:
        raise NmtError(f"{program}: its scores are not as COMET 2 writes them: {error!r}", _INSTALL) from error
    for row in rows:
        if len(row) != count or not all(map(math.isfinite, row)):
            raise NmtError(
                f"{program}: gave {counted(len(row), 'score')} for {counted(count, 'line')}, or one that is no number",
                _INSTALL,
            )
    return rows
