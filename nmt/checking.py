"""What values break of a config's rules, in the words of whoever wrote them: file, line, key, rule and hint."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from nmt.errors import RecipeError
from nmt.schema import Config, nearest, tag_of

Location = tuple[str | int, ...]
EVERY_KEY = "nmt recipe show RECIPE prints every key of a recipe that works, such as what nmt recipe new writes"
C = TypeVar("C", bound=Config)
_NO_NUMBER = dict.fromkeys(["int_parsing", "int_type", "int_from_float"], "a whole number is expected")
_NO_NUMBER |= dict.fromkeys(["float_parsing", "float_type"], "a number is expected")


class Unfit(ValueError):
    """A value that breaks a rule of a config, with what to do about it."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.hint = hint


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


def models_at(config: type[BaseModel], location: Sequence[str | int]) -> list[type[BaseModel]]:
    """The models that may stand at pydantic's `location`, whose union tags choose among a union's members."""
    models: list[type[BaseModel]] = [config]
    for part in location:
        if isinstance(part, int):
            continue
        children: list[type[BaseModel]] = []
        for model in models:
            if part in model.model_fields:
                children.extend(_models_in(model.model_fields[part].annotation))
            elif tag_of(model) == part:
                children.append(model)
        models = children or models  # a tag of a union of tables and lists of tables names none of them
    return models


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]


def check(
    config: type[C],
    values: Mapping[str, Any],
    source: str,
    text: str = "",
    places: Mapping[Location, str] | None = None,
    elsewhere: Mapping[str, str] | None = None,
) -> C:
    """`values` as a `config`. Raises one RecipeError that names every broken rule with file, line and key.

    `source` is the file's name and `text` what it holds; `places` names where values from elsewhere came from, and
    `elsewhere` tells what stands for keys that people bring along from other programs.
    """
    try:
        return config.model_validate(values)
    except ValidationError as error:
        problems, hints = [], []
        items = error.errors(include_url=False)
        for item in sorted(items, key=lambda item: line_of(text, _plain_location(item["loc"], values)) or 0):
            if item["type"] == "too_short" and any(_beneath(other["loc"], item["loc"]) for other in items):
                continue  # pydantic does not count the invalid items
            location = _plain_location(item["loc"], values)
            key = (*location, "kind") if item["type"] == "union_tag_invalid" else location
            problem, hint = _say(config, location, item, elsewhere or {})
            problems.append(f"{_place(key, source, text, places or {})}: {problem}")
            hints.append(hint)
        if len(problems) > 1:
            problems = [
                f"{problem} ({hint})" if hint else problem for problem, hint in zip(problems, hints, strict=True)
            ]
            hints = []
        raise RecipeError("\n".join(dict.fromkeys(problems)), "".join(hints) or EVERY_KEY) from error


def _beneath(inner: Location, outer: Location) -> bool:
    return len(inner) > len(outer) and inner[: len(outer)] == outer


def _place(location: Location, source: str, text: str, places: Mapping[Location, str]) -> str:
    for length in range(len(location), 0, -1):
        if location[:length] in places:
            return places[location[:length]]
    line = line_of(text, location) if text else None
    made = [place for where, place in places.items() if where[: len(location)] == location]
    if made and location and not line:  # a table that stands in no file
        return made[0]
    return f"{source}:{line}" if line else source


def _plain_location(location: Location, values: Mapping[str, Any]) -> Location:
    """Pydantic's location without the union tags it inserts, so that it names keys that stand in the file."""
    plain: list[str | int] = []
    here: Any = values
    for i, part in enumerate(location):
        in_list = isinstance(part, int) and isinstance(here, list) and part < len(here)
        in_table = isinstance(part, str) and isinstance(here, Mapping) and part in here
        if in_list or in_table:
            here = here[part]
        elif i < len(location) - 1:  # a union's tag: not a key of the file
            continue
        plain.append(part)
    return tuple(plain)


def _table(location: Location) -> str:
    """The table at `location` as a reader of the file would call it: ``[data.train] `` or nothing at the top."""
    names = [str(part) for part in location if not isinstance(part, int)]
    return f"[{'.'.join(names)}] " if names else ""


def _say(config: type[BaseModel], location: Location, item: Any, elsewhere: Mapping[str, str]) -> tuple[str, str]:
    """The problem without its place, and a hint or an empty string."""
    key, where = (str(location[-1]) if location else ""), _table(location[:-1])
    if location and isinstance(location[-1], int):
        key, where = f"entry {location[-1] + 1}", _table(location)
    kind, given = item["type"], item["input"]
    if kind == "extra_forbidden":
        return f"{where}{key} is not a known key", _known_key(config, item["loc"], key, elsewhere)
    if kind == "missing":
        table = _holds_tables(config, location)
        return f"{where}{key} is missing", f"add a table [{_dotted(location)}]" if table else f"add {key} = …"
    if kind == "tuple_type":
        if _holds_tables(config, location):
            return (
                f"{where}{key} is {given!r}; it is a list of tables",
                f"write [[{_dotted(location)}]] on a line of its own for each",
            )
        shown = json.dumps(given, ensure_ascii=False) if isinstance(given, str | int | float) else "…"
        return f"{where}{key} is {given!r}; it is a list", f"write {key} = [{shown}]"
    if kind == "union_tag_not_found":
        kinds = [repr(tag_of(model)) for model in models_at(config, location)]
        return f"{where}{key}: kind is missing", f"add kind = {' or '.join(kinds)}"
    if kind in {"union_tag_invalid", "literal_error"}:
        expected = item["ctx"].get("expected_tags") or item["ctx"].get("expected", "")
        given = item["ctx"].get("tag", given)
        name = nearest(str(given), re.findall(r"'([^']+)'", str(expected)))
        where = f"{_table(location)}kind" if "tag" in kind else where + key
        return (
            f"{where} = {given!r} is not one of {expected}",
            f"did you mean {name}?" if name else f"one of {expected}",
        )
    message = _NO_NUMBER.get(kind) or str(item["msg"]).removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if kind in {"model_type", "model_attributes_type", "dict_type"}:
        return (
            f"{where}{key} is {given!r}; it is a table of settings",
            f"write [{_dotted(location)}] on a line of its own",
        )
    if kind == "value_error" and not isinstance(given, str | int | float):
        hint = str(getattr(item["ctx"]["error"], "hint", ""))
        return (f"{_table(location)}{message}" if not message.startswith("[") else message), hint
    shown = f" = {given!r}" if isinstance(given, str | int | float | bool) else ""
    return f"{where}{key}{shown}: {message}", ""


def _holds_tables(config: type[BaseModel], location: Location) -> bool:
    models, key = models_at(config, location[:-1]), location[-1]
    return any(_models_in(model.model_fields[key].annotation) for model in models if key in model.model_fields)


def _dotted(location: Location) -> str:
    return ".".join(part for part in location if isinstance(part, str))


def _known_key(config: type[BaseModel], location: Location, key: str, elsewhere: Mapping[str, str]) -> str:
    """What may have been meant by an unknown key at pydantic's `location`."""
    names = sorted({name for model in models_at(config, location[:-1]) for name in model.model_fields})
    tag = location[-2] if len(location) > 1 else None
    siblings = [m for m in models_at(config, location[:-2]) if key in m.model_fields and tag_of(m) not in {None, tag}]
    if siblings:
        return f"{key} belongs to kind = {' or '.join(repr(tag_of(m)) for m in siblings)}"
    for name in difflib.get_close_matches(key, names, n=1, cutoff=0.6):
        return f"did you mean {name}?"
    known = {name: f"{name} in {table or 'the top'}" for name, table in _keys(config)} | dict(elsewhere)
    for name in difflib.get_close_matches(key, known, n=1, cutoff=0.7):
        return f"did you mean {known[name]}?"
    alike = difflib.get_close_matches(key, names, n=3, cutoff=0.3)
    return f"the nearest keys are {', '.join(alike)}" if alike else f"valid keys: {', '.join(names)}"


def _keys(config: type[BaseModel], table: str = "") -> Iterator[tuple[str, str]]:
    """Every key below `config` with its table, the outer ones last so that they win in a dict."""
    for name, field in config.model_fields.items():
        for model in _models_in(field.annotation):
            yield from _keys(model, f"{table}.{name}" if table else name)
    yield from ((name, f"[{table}]" if table else "") for name in config.model_fields)
