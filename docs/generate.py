"""Write the parts of docs/*.md that say what the code says: commands, recipe keys, presets, stages.  `make docs`.

A part stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``; the text around it is written by hand.
"""

from __future__ import annotations

import importlib
import inspect
import re
import types
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from nmt.cli.main import COMMANDS, nmt
from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from typer.models import ArgumentInfo, OptionInfo

from nmt.model.config import PRESETS, UNSHAPED, TransformerConfig
from nmt.recipe import Recipe
from nmt.stages.stage import PARENT, STAGES
from nmt.train.resume import FREE, ORDER

FOLDER = Path(__file__).parent
PART = re.compile(r"(<!-- generated: ([a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)
Row = Sequence[str]


def table(heads: Row, rows: Sequence[Row]) -> str:
    """A table in Markdown."""
    lines = [heads, ["---"] * len(heads), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


# ---- commands


def commands() -> str:
    """Every command in the order of `nmt --help`, those with sub-commands as their sub-commands."""
    parts = [_command("nmt", nmt, "## Options of `nmt` itself")]
    for name, file in COMMANDS.items():
        module = importlib.import_module(f"nmt.cli.{file}")
        if not hasattr(module, "app"):
            parts.append(_command(f"nmt {name}", getattr(module, file), f"## nmt {name}"))
            continue
        parts.append(f"## nmt {name}\n\n{module.app.info.help.partition('Example:')[0].strip()}")
        for entry in module.app.registered_commands:
            full = f"nmt {name} {entry.name or entry.callback.__name__}"
            parts.append(_command(full, entry.callback, f"### {full}"))
    return "\n\n".join(parts)


def _command(name: str, function: Callable[..., Any], heading: str) -> str:
    """What its --help says: usage, what it does, an example, arguments and options."""
    text, _, example = inspect.cleandoc(function.__doc__ or "").partition("Example: ")
    arguments, options, usage = [], [], [name]
    for parameter, kind, about in _parameters(function):
        repeats = get_origin(_bare(kind)) is list
        needed = parameter.default is inspect.Parameter.empty
        if isinstance(about, ArgumentInfo):
            label = (about.metavar or parameter.name.upper()).removesuffix("...")
            usage.append((label if needed else f"[{label}]") + "..." * repeats)
            arguments.append((f"`{label}`", about.help or ""))
        else:
            word = _word(kind, about.metavar)
            names = _names(parameter.name, about)
            usage += [f"{names[0]} {word}"] * needed
            label = ", ".join(f"`{name}`" for name in names) + f" `{word}`" * bool(word)
            options.append((label, (about.help or "") + _default(parameter)))
    usage += ["[OPTIONS]"] if options and name != "nmt" else []
    parts = [heading]
    if name != "nmt":
        parts += [f"`{' '.join(usage)}`", text.strip(), f"```sh\n{' '.join(example.split())}\n```"]
    parts += [table(("argument", "meaning"), arguments)] * bool(arguments)
    return "\n\n".join([*parts, table(("option", "meaning"), options)])


def _parameters(function: Callable[..., Any]) -> Iterator[tuple[inspect.Parameter, Any, Any]]:
    """Each parameter with its type and what typer is told about it."""
    hints = get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters.values():
        kind, about = get_args(hints[parameter.name])[:2]
        yield parameter, kind, about


def _names(name: str, about: OptionInfo) -> list[str]:
    """An option's names, as they were given or as typer makes one of the parameter's."""
    given = [about.default, *(about.param_decls or ())]  # in an annotation, typer takes the first for a default
    names = [n for n in given if isinstance(n, str) and n.startswith("-")]
    return names or [f"--{name.strip('_').replace('_', '-')}"]


def _bare(kind: Any) -> Any:
    """A type without its None."""
    if get_origin(kind) in {Union, types.UnionType}:
        return next(inner for inner in get_args(kind) if inner is not type(None))
    return kind


def _word(kind: Any, metavar: str | None) -> str:
    """What stands after an option's name: a placeholder, the choices, or nothing for a flag."""
    kind = _bare(kind)
    kind = get_args(kind)[0] if get_origin(kind) is list else kind
    if metavar or kind is bool:
        return metavar or ""
    members = kind if isinstance(kind, type) and issubclass(kind, Enum) else ()
    choices = get_args(kind) if get_origin(kind) is Literal else [str(member.value) for member in members]
    return "|".join(choices) or ("N" if kind is int else "VALUE")


def _default(parameter: inspect.Parameter) -> str:
    if parameter.default is inspect.Parameter.empty:
        return " Required."
    if parameter.default in (None, "", False):
        return ""
    return f" Default: `{parameter.default}`."


# ---- recipes


def keys() -> str:
    """Every table of a recipe with its keys, in the order of the file; a class that stands in two places once."""
    places: dict[type[BaseModel], list[str]] = {}
    kinds: dict[type[BaseModel], bool] = {}
    for place, config, one_of_several in _tables(Recipe, ""):
        places.setdefault(config, []).append(place)
        kinds[config] = one_of_several
    parts = []
    for config, where in places.items():
        heading = ", ".join(f"`{place}`" for place in dict.fromkeys(where)) if where != [""] else "Top of the file"
        if kinds[config]:
            heading += f': kind `"{config.model_fields["kind"].default}"`'
        rows = [_key(name, field) for name, field in config.model_fields.items()]
        depth = "###" if config is Recipe or not any(mark in where[0] for mark in (".", "[[")) else "####"
        about = inspect.cleandoc(config.__doc__ or "")
        parts.append(f"{depth} {heading}\n\n{about}\n\n{table(('key', 'value', 'default', 'meaning'), rows)}")
    return "\n\n".join(parts)


def _tables(config: type[BaseModel], path: str, several: bool = False) -> Iterator[tuple[str, type[BaseModel], bool]]:
    """Each table below `config`: how it is written, its class, whether it is one kind of several."""
    yield path and (f"[[{path}]]" if several else f"[{path}]"), config, False
    for name, field in config.model_fields.items():
        below = list(_configs(field.annotation))
        many = get_origin(field.annotation) is tuple
        for inner in below:
            first, *rest = _tables(inner, f"{path}.{name}" if path else name, many)
            yield first[0], first[1], len(below) > 1
            yield from rest


def _configs(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    else:
        for argument in get_args(annotation):
            yield from _configs(argument)


def _key(name: str, field: FieldInfo) -> Row:
    about = " ".join((field.description or "").split())
    if not about and (below := list(_configs(field.annotation))):
        about = inspect.cleandoc(below[0].__doc__ or "").split("\n")[0]
    if name == "kind" and get_origin(field.annotation) is Literal and len(get_args(field.annotation)) == 1:
        about = about or "Chooses this table's keys."
    return f"`{name}`", _value(field.annotation, field.metadata), _shown(field), about


def _value(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    """What may stand after the equals sign, for people."""
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return _value(inner, [*metadata, *more])
    if get_origin(annotation) in {Union, types.UnionType} and not list(_configs(annotation)):
        inner = next(a for a in get_args(annotation) if a is not type(None))
        return _value(inner, metadata)
    if get_origin(annotation) is Literal:
        return ", ".join(f'`"{choice}"`' for choice in get_args(annotation))
    if get_origin(annotation) is tuple:
        return "list of tables" if list(_configs(annotation)) else f"{_value(get_args(annotation)[0])}, or list of them"
    if list(_configs(annotation)):
        return "table"
    words = {int: "whole number", float: "number", bool: "`true`, `false`", str: "text", Path: "file"}
    counted = any(isinstance(m, BeforeValidator) for m in metadata)
    return ("count" if counted else words[annotation]) + _bounds(metadata)


def _bounds(metadata: Sequence[Any]) -> str:
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    found = [f"{sign} {getattr(m, name):g}" for m in metadata for name, sign in signs.items() if hasattr(m, name)]
    return (" " + ", ".join(found)) if found else ""


def _shown(field: FieldInfo) -> str:
    """A default as TOML would write it."""
    default = field.default
    if default is PydanticUndefined:
        return "needed" if field.is_required() else ""
    if default is None:
        return "unset"
    if isinstance(default, BaseModel):
        kind = getattr(default, "kind", "")
        return f'kind `"{kind}"`' if kind else "its defaults"
    if isinstance(default, tuple):
        return ", ".join(f"`{item.kind}`" for item in default) or "none"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, float):
        return f"`{default!r}`".replace("e-0", "e-")
    return f'`"{default}"`' if isinstance(default, str) else f"`{default}`"


def presets() -> str:
    """The presets of [model], every number of each."""
    models = [TransformerConfig.model_validate({"preset": name}) for name in PRESETS]
    names = [n for n in TransformerConfig.model_fields if n not in {"kind", "preset", "attention", "position"}]
    rows = [[f"`{name}`", *(str(getattr(model, name)) for model in models)] for name in names]
    rows.append(["`attention.heads`", *(str(model.attention.heads) for model in models)])
    rows.append(["parameters beside the embeddings", *(f"{_parameters_of(model) / 1e6:.1f} M" for model in models)])
    rows.append(["embeddings of 8,000 pieces", *(f"{8000 * model.width / 1e6:.1f} M" for model in models)])
    return table(["key", *(f"`{name}`" for name in PRESETS)], rows)


def _parameters_of(model: TransformerConfig) -> int:
    """Weights of the layers: attention without biases, feed-forward with, and a layer norm for each sub-layer."""
    width, inner = model.width, model.feedforward
    attention, feedforward, norm = 4 * width * width, 2 * width * inner + width + inner, 2 * width
    encoder = model.encoder_layers * (attention + feedforward + 2 * norm)
    decoder = model.decoder_layers * (2 * attention + feedforward + 3 * norm)
    return encoder + decoder + (2 * norm if model.norm == "pre" else 0)


# ---- stages


def stages() -> str:
    """What each stage depends on and writes."""
    rows = []
    for stage in STAGES.values():
        settings = ", ".join(f"`{section}`" for section in stage.sections)
        ignored = ", ".join(f"`{key}`" for key in stage.ignores)
        settings += f" without {ignored}" if ignored else ""
        rows.append((f"`{stage.name}`", settings, ", ".join(f"`{folder}/`" for folder in stage.folders)))
    return table(("stage", "its part of the recipe", "folders in the run folder"), rows)


def resume() -> str:
    """What a restart of training does with a changed setting."""
    keys = [
        f"train.{name}" for config in _configs(Recipe.model_fields["train"].annotation) for name in config.model_fields
    ]
    told = [key for key in keys if key not in (*FREE, *ORDER, PARENT)] + sorted(
        f"model.{name}" for name in UNSHAPED - {"preset"}
    )
    unsaid = {"corpora", "groups"}
    free, order, rest = (", ".join(f"`{key}`" for key in some if key not in unsaid) for some in (FREE, ORDER, told))
    rows = [
        (free, "training goes on"),
        (rest, "training goes on, with a warning that names the change"),
        (f"{order}, the corpora's sizes and weights", "the same, and the epoch begins again in its new order"),
        (
            "the rest of `[model]`, `[languages]`, `preprocess.normalization`, `preprocess.moses`, "
            f"`train.optimizer.kind`, the vocabulary, the training pairs, the weights of `{PARENT}`",
            "refused: these weights mean nothing to the new settings",
        ),
    ]
    return table(("changed", "what happens"), rows)


PARTS = {"commands": commands, "keys": keys, "presets": presets, "stages": stages, "resume": resume}


def refreshed(text: str) -> str:
    """`text` with every generated part as the code has it now."""
    return PART.sub(lambda found: f"{found[1]}\n{PARTS[found[2]]()}\n\n{found[3]}", text)


def main() -> None:
    """Bring every file of this folder up to date."""
    for path in sorted(FOLDER.glob("*.md")):
        old = path.read_text(encoding="utf-8")
        new = refreshed(old)
        if new != old:
            path.write_text(new, encoding="utf-8")
            print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
