"""The base of every config: a frozen pydantic model that refuses unknown keys; reading, nearest names, fingerprints."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from nmt.errors import RecipeError


class Config(BaseModel):
    """A frozen section of settings. Unknown keys, wrong types and broken rules are errors with their place."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, use_attribute_docstrings=True, allow_inf_nan=False
    )

    @model_validator(mode="before")
    @classmethod
    def _truth_is_no_number(cls, values: Any) -> Any:
        """`steps = true` is a mistake, but pydantic takes it for 1: as a string it is refused with its place."""
        if not isinstance(values, dict):
            return values
        numbers = {n for n, f in cls.model_fields.items() if re.search(r"\b(int|float)\b", str(f.annotation))}
        return {k: _Truth(str(v).lower()) if k in numbers and isinstance(v, bool) else v for k, v in values.items()}

    @model_validator(mode="before")
    @classmethod
    def _kind_left_out_is_the_default(cls, values: Any) -> Any:
        """`[train.schedule]` without `kind` is of the kind that the schedule has where nothing is said."""
        if not isinstance(values, dict):
            return values
        kinds = {name: tag_of(type(field.default)) for name, field in cls.model_fields.items() if field.discriminator}
        tables = {name: values[name] for name in kinds if isinstance(values.get(name), dict)}
        return values | {name: {"kind": kinds[name], **table} for name, table in tables.items()}


class _Truth(str):
    """true or false, told without quotes."""

    def __repr__(self) -> str:
        return str(self)


def parse_count(value: Any) -> Any:
    """`100k`, `2M` and `1_000` as numbers; whatever isn't such a string goes on to pydantic's own checks."""
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:_\d+)*(?:\.\d+)?)\s*([kKmMgG]?)\s*", value)
        if match is None:
            raise ValueError(f"{value!r} is not a count; a whole number, or one with a unit such as 100k or 2M, is")
        number = float(match[1].replace("_", "")) * {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}[match[2].lower()]
        if number != int(number):
            raise ValueError(f"{value!r} is not a whole number")
        return int(number)
    return value


Count = Annotated[int, BeforeValidator(parse_count)]


def fingerprint(*values: object) -> str:
    """A short digest of settings: equal exactly when every field is equal."""
    plain = [v.model_dump(mode="json") if isinstance(v, BaseModel) else v for v in values]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]


def nearest(name: str, names: Iterable[str]) -> str:
    """The valid name most like `name`, or an empty string when none is."""
    return next(iter(difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)), "")


def read_toml(path: Path) -> tuple[dict[str, Any], str]:
    """The file's values and its text. Raises RecipeError naming the file and, where TOML says so, the line."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise RecipeError(f"{path}: cannot be read: {error.strerror}", _path_hint(path)) from error
    except UnicodeDecodeError as error:
        hint = _no_recipe(path) or "save the recipe as UTF-8"
        raise RecipeError(f"{path}: byte {error.start} is not valid UTF-8", hint) from error
    try:
        return tomllib.loads(text), text
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"\(at line (\d+), column \d+\)", str(error))
        place = f"{path}:{match[1]}" if match else str(path)
        what = re.sub(r"\s*\(at .*\)$", "", str(error))
        raise RecipeError(f"{place}: not valid TOML: {what}", _no_recipe(path) or _toml_hint(what)) from error


def _path_hint(path: Path) -> str:
    """The file that was meant: a run folder's own recipe, one in recipes/, or one called almost so."""
    if path.is_dir():
        kept = path / "recipe.toml"
        return f"a recipe is a file: {kept} is one" if kept.is_file() else "a recipe is a file, such as NAME.toml"
    kept = path.parent / "recipes" / path.with_suffix(".toml").name
    if kept.is_file():
        return f"did you mean {kept}?"
    beside = {other.stem: other for other in path.parent.glob("*.toml")} if path.parent.is_dir() else {}
    near = nearest(path.stem, beside)  # without the ends, in which all are alike
    return f"did you mean {beside[near]}?" if near else "check the path"


def _no_recipe(path: Path) -> str:
    """What to do where a text, say, was named instead of a recipe."""
    return "" if path.suffix == ".toml" else "a recipe is a TOML file; nmt recipe new writes one for your texts"


def _toml_hint(problem: str) -> str:
    if "\\" in problem:
        return "write paths with / between folders, or in single quotes"
    return "strings stand in quotes, tables under [headings]"


def tag_of(model: type) -> Any:
    """The `kind` of a config that is one of several; None of another."""
    return model.model_fields["kind"].default if issubclass(model, BaseModel) and "kind" in model.model_fields else None
