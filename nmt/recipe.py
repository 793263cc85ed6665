"""The recipe: every component's section together, read once and frozen."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, model_validator

from nmt.checking import EVERY_KEY, Location, Unfit, check
from nmt.corpus.config import DataConfig, LanguagesConfig, PreprocessConfig
from nmt.errors import RecipeError
from nmt.model.config import ModelConfig, TransformerConfig
from nmt.schema import Config, read_toml
from nmt.score.config import ScoreConfig
from nmt.search.config import SearchConfig
from nmt.subwords.config import SubwordConfig
from nmt.train.config import AverageConfig, TrainConfig
from nmt.wording import counted

ELSEWHERE = {  # what other toolkits call some keys
    "learning_rate": "peak in [train.schedule]",
    "lr": "peak in [train.schedule]",
    "lr_scheduler": "kind in [train.schedule]",
    "warmup": "warmup_steps in [train.schedule]",
    "weight_decay": "weight_decay in [train.optimizer]",
    "adam_betas": "beta1 and beta2 in [train.optimizer]",
    "max_steps": "steps in [train]",
    "max_updates": "steps in [train]",
    "max_epochs": "epochs in [train]",
    "batch_size": "batch_tokens in [train]",
    "max_tokens": "batch_tokens in [train]",
    "update_freq": "accumulate in [train]",
    "grad_clip": "clip_norm in [train]",
    "early_stopping": "patience in [train]",
    "beam_size": "beam in [translate]",
    "vocab_size": "size in [bpe]",
    "vocabulary_size": "size in [bpe]",
    "merge_operations": "size in [bpe]",
    "hidden_size": "width in [model]",
    "layers": "encoder_layers and decoder_layers in [model]",
    "heads": "heads in [model.attention]",
    "finetune_from_model": "start_from in [train]",
    "pretrained_model": "start_from in [train]",
    "train_from": "start_from in [train]",
    "from": "start_from in [train]",
    "lowercase": "lowercase of a metric in [score]",
}


class Recipe(Config):
    """Everything that shapes a translation system, from raw text to its scores."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]*$")
    """Name of the run: the run folder is runs/NAME unless --run-dir says otherwise."""
    seed: int = Field(1, ge=0)
    """Every random choice derives from it."""
    languages: LanguagesConfig
    data: DataConfig
    preprocess: PreprocessConfig = PreprocessConfig()
    bpe: SubwordConfig = SubwordConfig()
    model: ModelConfig = TransformerConfig()
    train: TrainConfig
    average: AverageConfig = AverageConfig()
    translate: SearchConfig = SearchConfig()
    score: ScoreConfig = ScoreConfig()

    @model_validator(mode="after")
    def _fits_together(self) -> Recipe:
        if self.model.tie_embeddings == "all" and not self.bpe.shared:
            raise ValueError(
                '[model] tie_embeddings = "all" needs [bpe] shared = true; "target" works with separate ones'
            )
        if problem := self.data.untagged(others=self.train.start_from is not None):
            raise ValueError(f"[data] {problem}")
        if self.train.subword_dropout and self.bpe.kind != "bpe":
            raise ValueError(f"[train] subword_dropout leaves out merges; [bpe] kind = {self.bpe.kind!r} has none")
        guide = self.train.guided_alignment
        if guide and (guide.layer or 1) > self.model.decoder_layers:
            layers = self.model.decoder_layers
            raise Unfit(
                f"[train.guided_alignment] layer = {guide.layer}: the decoder has {counted(layers, 'layer')}",
                f"name one up to {layers}, or none for the last but one",
            )
        if guide and (guide.head or 1) > self.model.attention.heads:
            heads = self.model.attention.heads
            raise Unfit(
                f"[train.guided_alignment] head = {guide.head}: a layer has {counted(heads, 'head')}",
                f"name one up to {heads}, or none for the mean of all",
            )
        return self


def is_default(recipe: Recipe, key: str, value: Any) -> bool:
    """Whether the dotted `key` of `recipe` has this value when nothing is said: then it changes no run without it."""
    *tables, name = key.split(".")
    table: Any = recipe
    for step in tables:
        table = getattr(table, step, None)
    field = type(table).model_fields.get(name) if isinstance(table, Config) else None
    return field is not None and not field.is_required() and bool(field.get_default(call_default_factory=True) == value)


def read(path: Path, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe in the file `path`, with `overrides` such as ``train.steps=500`` put over it.

    Paths become absolute: they are relative to the file's own folder. An override's value is TOML, or a string without
    quotes; ``data.test.0.source=…`` reaches into lists, and an empty value leaves the key to its default.
    Raises RecipeError naming every unknown key and broken rule with file and line.
    """
    values, text = read_toml(path)
    places: dict[Location, str] = {}
    for override in overrides:
        location = _override(values, override)
        places[location] = f"--set {'.'.join(map(str, location))}"
    recipe = check(Recipe, values, str(path), text, places, ELSEWHERE)
    return Recipe.model_validate(_plain(recipe, path.parent))


def dump(recipe: Recipe) -> str:
    """The recipe as TOML with every default written out: ``read`` gives an equal recipe back."""
    import tomli_w

    return tomli_w.dumps(_plain(recipe))


def _plain(value: Any, folder: Path | None = None) -> Any:
    """Tables, lists and strings as TOML knows them, unset values left out; paths counted from `folder` if given."""
    if isinstance(value, BaseModel):
        fields = ((name, getattr(value, name)) for name in type(value).model_fields)
        return {name: _plain(item, folder) for name, item in fields if item is not None}
    if isinstance(value, tuple | list):
        return [_plain(item, folder) for item in value]
    if isinstance(value, Path):
        return str(_located(value, folder) if folder is not None else value)
    return value


def _located(path: Path, folder: Path) -> Path:
    """`path` from `folder`, absolute and without ``..`` (unless a symbolic link makes that another file)."""
    whole = folder / os.path.expanduser(path)
    short = Path(os.path.abspath(whole))
    return short if short.resolve() == whole.resolve() else whole.resolve()


def _override(values: dict[str, Any], override: str) -> Location:
    """Put one ``key=value`` into `values` and return where."""
    key, equals, text = override.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts):
        raise RecipeError(f"--set {override}: not of the form key=value", "write it like --set train.steps=500")
    here: Any = values
    location: list[str | int] = []
    for part, following in zip(parts, [*parts[1:], None], strict=True):
        step = _step(here, part, key)
        location.append(step)
        if following is None:
            _put(here, step, text.strip())
        else:
            if isinstance(here, dict):
                here.setdefault(step, {})
            elif step == len(here):
                here.append({})
            here = here[step]
    return tuple(location)


def _step(here: Any, part: str, key: str) -> str | int:
    """`part` as a key of the table, or an index of the list, `here`."""
    if isinstance(here, dict):
        return part
    if not isinstance(here, list):
        raise RecipeError(f"--set {key}: what stands before {part} is {here!r}, not a table", EVERY_KEY)
    if not part.isdecimal() or int(part) > len(here):
        raise RecipeError(
            f"--set {key}: {part} is not a place in a list of {len(here)}",
            f"0 to {len(here)} are; {len(here)} adds one",
        )
    return int(part)


def _put(here: Any, step: Any, text: str) -> None:
    if text == "":
        if isinstance(here, dict):
            here.pop(step, None)
        elif step < len(here):
            del here[step]
    elif isinstance(here, list) and step == len(here):
        here.append(_value(text))
    else:
        here[step] = _value(text)


def _value(text: str) -> Any:
    """A TOML value, or the text itself where it is none: ``bfloat16``, ``100k``, a path."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return parsed["value"] if len(parsed) == 1 else text
