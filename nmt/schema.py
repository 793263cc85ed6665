"""The base of every config: a frozen pydantic model that refuses unknown keys; reading, nearest names, fingerprints."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from nmt.errors import RecipeError

Location = tuple[str | int, ...]
C = TypeVar("C", bound="Config")


class Config(BaseModel):
    """A frozen section of settings. Unknown keys, wrong types and broken rules are errors with their place."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, use_attribute_docstrings=True)


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
        raise RecipeError(f"{path}: cannot be read: {error.strerror}", "check the path") from error
    except UnicodeDecodeError as error:
        raise RecipeError(f"{path}: byte {error.start} is not valid UTF-8", "save the recipe as UTF-8") from error
    try:
        return tomllib.loads(text), text
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"\(at line (\d+), column \d+\)", str(error))
        place = f"{path}:{match[1]}" if match else str(path)
        what = re.sub(r"\s*\(at .*\)$", "", str(error))
        raise RecipeError(f"{place}: not valid TOML: {what}", "strings stand in quotes; see docs/recipes.md") from error


def line_of(text: str, location: Sequence[str | int]) -> int | None:
    """The line of the TOML `text`, from 1, on which the key at `location` stands, or the table nearest above it."""
    best: tuple[int, int] | None = None  # (how many parts of the location match, line)
    table: list[str | int] = []
    seen: dict[tuple[str | int, ...], int] = {}
    wanted = list(location)
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?$", line)
        if header:
            table = [part.strip().strip("\"'") for part in header[2].split(".")]
            if header[1] == "[[":
                seen[tuple(table)] = seen.get(tuple(table), -1) + 1
                table.append(seen[tuple(table)])
            found: list[str | int] = table
        else:
            key = re.match(r"\s*([A-Za-z0-9_\-.\"']+)\s*=", line)
            if not key:
                continue
            found = table + [part.strip("\"'") for part in key[1].split(".")]
        if wanted[: len(found)] == found and (best is None or len(found) > best[0]):
            best = (len(found), number)
    return best[1] if best else None


def field_names(config: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """The valid keys of the table at `location` inside `config`; union members contribute all their names."""
    models: list[type[BaseModel]] = [config]
    for part in location:
        if isinstance(part, int):
            continue
        children: list[type[BaseModel]] = []
        for model in models:
            if part in model.model_fields:
                children.extend(_models_in(model.model_fields[part].annotation))
            else:  # the tag of a union, which pydantic puts into its locations
                children.append(model)
        models = children
    return sorted({name for model in models for name in model.model_fields})


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]


def check(config: type[C], values: Mapping[str, Any], source: str, text: str = "") -> C:
    """`values` as a `config`. Raises one RecipeError that names every broken rule with file, line and key."""
    try:
        return config.model_validate(values)
    except ValidationError as error:
        problems, hints = [], []
        for item in error.errors(include_url=False):
            location = _plain_location(item["loc"], values)
            line = line_of(text, location) if text else None
            place = f"{source}:{line}" if line else source
            problem, hint = _say(config, location, item)
            problems.append(f"{place}: {problem}")
            hints.append(hint)
        hint = "; ".join(dict.fromkeys(h for h in hints if h)) or "see docs/recipes.md for every key"
        raise RecipeError("\n".join(dict.fromkeys(problems)), hint) from error


def _plain_location(location: Location, values: Mapping[str, Any]) -> Location:
    """Pydantic's location without the union tags it inserts, so that it names keys that stand in the file."""
    plain: list[str | int] = []
    here: Any = values
    for i, part in enumerate(location):
        if isinstance(part, int) and isinstance(here, list) and part < len(here):
            here = here[part]
        elif isinstance(part, str) and isinstance(here, Mapping) and part in here:
            here = here[part]
        elif i < len(location) - 1:  # a union's tag: not a key of the file
            continue
        plain.append(part)
    return tuple(plain)


def _say(config: type[BaseModel], location: Location, item: Any) -> tuple[str, str]:
    table = ".".join(str(part) for part in location[:-1] if not isinstance(part, int))
    key = str(location[-1]) if location else ""
    where = f"[{table}] " if table else ""
    kind = item["type"]
    if kind == "extra_forbidden":
        name = nearest(key, field_names(config, location[:-1]))
        valid = ", ".join(field_names(config, location[:-1]))
        return f"{where}{key} is not a known key", f"did you mean {name}?" if name else f"valid keys: {valid}"
    if kind == "missing":
        return f"{where}{key} is missing", f"add {key} = …"
    if kind in {"union_tag_invalid", "literal_error"}:
        expected = item.get("ctx", {}).get("expected_tags") or item.get("ctx", {}).get("expected", "")
        given = item.get("ctx", {}).get("tag", item["input"])
        name = nearest(str(given), re.findall(r"'([^']+)'", str(expected)))
        hint = f"did you mean {name}?" if name else f"one of {expected}"
        where = (
            f"[{'.'.join(str(p) for p in location if not isinstance(p, int))}] kind" if "tag" in kind else where + key
        )
        return f"{where} = {given!r} is not one of {expected}", hint
    message = str(item["msg"]).removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    given = item["input"]
    if kind == "value_error" and not isinstance(given, str | int | float):
        return f"{where}{key}: {message}" if key else message, ""
    return f"{where}{key} = {given!r}: {message}", ""
