"""Names on disk, and the description that makes a model folder complete.

RUN/checkpoints/step-00004000/
    model.safetensors   weights by parameter name, a tied weight once
    model.json          `Description`: languages, model, text, search settings, vocabulary digests
    vocabulary.model    the subword model (source.model and target.model where the sides have their own)
    validation.json     what validation measured at this step, where there was one
    resume/             optimizer.safetensors, rng.safetensors, state.json: delete it to publish; and, where
                        model.safetensors is a moving average, trained.safetensors, of which it is one;
                        digests.json: those of the tensors' files here
RUN/checkpoints/best.json, last.json    {"step": "step-00004000"}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import Field, SerializerFunctionWrapHandler, ValidationError, model_serializer

from nmt import __version__
from nmt.corpus.config import LanguagesConfig, TextConfig
from nmt.errors import ModelError
from nmt.files import read_json, sha256
from nmt.model.config import ModelConfig
from nmt.schema import Config, nearest
from nmt.search.config import SearchConfig

FORMAT = 1
WEIGHTS = "model.safetensors"
DESCRIPTION = "model.json"
VALIDATION = "validation.json"
CARD = "README.md"
SHARED_VOCABULARY = "vocabulary.model"
SOURCE_VOCABULARY, TARGET_VOCABULARY = "source.model", "target.model"
SOURCE_TRUECASE, TARGET_TRUECASE = "truecase.source", "truecase.target"
RESUME = "resume"
OPTIMIZER, RNG, STATE = "optimizer.safetensors", "rng.safetensors", "state.json"
TRAINED = "trained.safetensors"
DIGESTS = "digests.json"
BEST, LAST = "best.json", "last.json"


class Parent(Config):
    """The model that a fine-tuning started from."""

    name: str
    """Name of its recipe, or of its folder."""
    steps: tuple[int, ...] = ()
    """Its own steps."""
    weights_sha256: str
    """Digest of its weights."""


class Origin(Config):
    """Where a model's weights come from: what its card and `nmt checkpoint show` tell."""

    name: str = ""
    """Name of the recipe."""
    corpora: tuple[str, ...] = ()
    """Training files, by name."""
    training_pairs: int | None = None
    """Sentence pairs trained on."""
    seed: int | None = None
    """The recipe's seed."""
    steps: tuple[int, ...] = ()
    """Update of the checkpoint, or those of the checkpoints that were averaged."""
    recipe: str = ""
    """Fingerprint of the recipe."""
    parent: Parent | None = None
    """What training started from, if not from random weights."""

    @model_serializer(mode="wrap")
    def _without_nothing(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A model that has no parent doesn't say so: versions of before read it."""
        return {key: value for key, value in write(self).items() if key != "parent" or value is not None}


_UNSAID = {"needs_tag", "context_sentences"}  # where they say nothing


class Description(Config):
    """model.json: with the weights and the vocabulary, all that is needed to translate raw text."""

    format: int = FORMAT
    nmt: str = __version__
    languages: LanguagesConfig
    model: ModelConfig
    text: TextConfig = TextConfig()
    translate: SearchConfig = SearchConfig()
    shared_vocabulary: bool
    source_size: int = Field(gt=0)
    target_size: int = Field(gt=0)
    vocabulary_sha256: dict[str, str]
    """Digest of every vocabulary and truecase file of the folder, by file name."""
    weights_sha256: str | None = None
    """Digest of the weights file, filled in when it is written; folders of before have none."""
    max_source_tokens: int = Field(ge=2)
    """Longest source in subword ids, the end mark included; longer lines are split before translating."""
    origin: Origin = Origin()
    needs_tag: bool = False
    """Every training sentence had a tag, so that a line to translate needs one; the vocabulary knows them."""
    context_sentences: int = Field(0, ge=0)
    """How many source sentences before each one the model reads with it."""

    @model_serializer(mode="wrap")
    def _without_nothing(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A model without tags, or context, doesn't speak of them: versions of before read it."""
        return {key: value for key, value in write(self).items() if key not in _UNSAID or value}

    @property
    def source_vocabulary(self) -> str:
        """File name of the source side's subword model."""
        return SHARED_VOCABULARY if self.shared_vocabulary else SOURCE_VOCABULARY

    @property
    def target_vocabulary(self) -> str:
        """File name of the target side's subword model."""
        return SHARED_VOCABULARY if self.shared_vocabulary else TARGET_VOCABULARY


def read_description(folder: Path) -> Description:
    """`folder`'s model.json. Raises ModelError when it is missing, damaged or of a newer format."""
    path = folder / DESCRIPTION
    data = read_json(path)
    number = data.get("format") if isinstance(data, dict) else None
    if not isinstance(number, int):
        raise ModelError(f"{path}: is not a model description: it has no format number", "name a folder made by nmt")
    if number > FORMAT:
        made = data.get("nmt", "a newer version")
        raise ModelError(
            f"{path}: format = {number} was written by nmt {made}; nmt {__version__} reads formats up to {FORMAT}",
            "pip install --upgrade nmt",
        )
    try:
        return Description.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ModelError(
            f"{path}: {place}: {first['msg']}", "take the file as it was written with the weights"
        ) from error


def step_name(step: int) -> str:
    """`step-00004000`."""
    return f"step-{step:08d}"


def step_number(folder: Path) -> int | None:
    """The update that a checkpoint folder's name tells, or None for any other name."""
    match = re.fullmatch(r"step-(\d+)", folder.name)
    return int(match[1]) if match else None


def step_folders(checkpoints: Path) -> list[Path]:
    """Every whole checkpoint of a run, in the order of their steps as numbers."""
    if not checkpoints.is_dir():
        return []
    numbered = [(number, path) for path in checkpoints.iterdir() if (number := step_number(path)) is not None]
    return [path for _, path in sorted(numbered) if (path / DESCRIPTION).is_file()]


def pointed(checkpoints: Path, pointer: str) -> Path | None:
    """The checkpoint that best.json or last.json names, or None where there is no such file or folder."""
    path = checkpoints / pointer
    if not path.is_file():
        return None
    data = read_json(path)
    name = data.get("step") if isinstance(data, Mapping) else None
    if not isinstance(name, str) or step_number(Path(name)) is None:
        raise ModelError(f"{path}: names no checkpoint", "remove it")
    return checkpoints / name if (checkpoints / name / DESCRIPTION).is_file() else None


def resolve(model: Path) -> Path:
    """The model folder that `model` means: itself, or a run's averaged model, else its best, else its last checkpoint.

    Raises ModelError for anything else.
    """
    if model.is_file():
        raise ModelError(_about_file(model), "name the folder of a run, a checkpoint or an exported model")
    if not model.is_dir():
        raise ModelError(f"{model}: there is no such folder", _about_missing(model))
    if (model / DESCRIPTION).is_file():
        return model
    if (model / "model" / DESCRIPTION).is_file():
        return model / "model"
    for checkpoints in (model / "checkpoints", model):
        found = (
            pointed(checkpoints, BEST) or pointed(checkpoints, LAST) or next(reversed(step_folders(checkpoints)), None)
        )
        if found is not None:
            return found
    raise ModelError(
        f"{model}: holds no model: no {DESCRIPTION}, no model/ and no checkpoints/",
        _models_within(model) or "name a run folder that has been trained, a checkpoint folder or an exported model",
    )


def _models_within(folder: Path) -> str:
    """The runs and models in a folder that is none, the last changed first."""
    found: list[tuple[float, Path]] = []
    with suppress(OSError):
        for path in folder.iterdir():
            if (
                (path / "model" / DESCRIPTION).is_file()
                or (path / DESCRIPTION).is_file()
                or step_folders(path / "checkpoints")
            ):
                found.append((path.stat().st_mtime, path))
    names = [str(path) for _, path in sorted(found, reverse=True)]
    more = f" or {len(names) - 3} more" if len(names) > 3 else ""
    return f"name one that is in it: {', '.join(names[:3])}{more}" if names else ""


def _about_missing(path: Path) -> str:
    beside: list[str] = []
    with suppress(OSError):
        beside = [other.name for other in path.parent.iterdir() if other.is_dir()]
    near = nearest(path.name, beside)
    return f"did you mean {path.with_name(near)}?" if near else "check the path; a run lies in runs/NAME"


def _about_file(path: Path) -> str:
    with path.open("rb") as stream:
        start = stream.read(4)
    if start[:2] in {b"PK", b"\x80\x02"} or path.suffix in {".pt", ".pth", ".pkl"}:
        return f"{path}: is a pickled PyTorch file, which can run code when loaded; nmt never opens one"
    return f"{path}: is a file; a model is a folder"


def digests(files: Mapping[str, Path]) -> dict[str, str]:
    """SHA-256 of each file, by the name it gets in the model folder."""
    return {name: sha256(path) for name, path in sorted(files.items())}


def read_validation(folder: Path) -> dict[str, Any] | None:
    """What validation measured at a checkpoint (step, loss, bleu …), or None where it was not validated."""
    path = folder / VALIDATION
    if not path.is_file():
        return None
    data = read_json(path)
    return data if isinstance(data, dict) else None
