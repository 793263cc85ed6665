"""Arguments that several commands share.  A new command takes them from here, so that one name means one thing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from . import show


def count(text: str) -> int:
    """A number, perhaps with a unit: 500, 100k, 2M."""
    from nmt.schema import parse_count

    try:
        return int(parse_count(text))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def option(*names: str, help: str, metavar: str | None = "N", panel: str | None = None, **more: Any) -> Any:
    """An option whose default is that nothing is said, so that --help shows none."""
    return typer.Option(*names, metavar=metavar, show_default=False, rich_help_panel=panel, help=help, **more)


NAMES = {"batch_lines": "--batch-size", "buffer_lines": "--buffer", "form": "--format", "input_form": "--input-format"}


def option_of(setting: str) -> str:
    """What the command line calls a setting."""
    return "MODEL" if setting == "models" else NAMES.get(setting, f"--{setting.replace('_', '-')}")


def in_options(problem: str) -> str:
    """What is wrong with settings of search, as said to somebody who gave them as options: --beam 3.

    Settings of a line of JSON stay as they are.
    """
    if not re.match("translate: |n_best = ", problem):
        return problem
    from nmt.search.control.config import ControlConfig

    names = "|".join(["n_best", *ControlConfig.model_fields])
    said = re.sub(
        rf"\b({names}) = (?:'(.*?)'|([^\s,;:]+))", lambda m: f"{option_of(m[1])} {m[2] or m[3] or ''}", problem
    )
    return re.sub(r"^translate: ", "", said, flags=re.MULTILINE)


RecipeFile = Annotated[
    Path, typer.Argument(metavar="RECIPE", show_default=False, help="A recipe, such as recipes/sample.toml.")
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", show_default=False, help="Change a value of the recipe; may repeat."),
]
RunDir = Annotated[
    Path | None,
    typer.Option("--run-dir", metavar="DIR", show_default=False, help="The run folder; otherwise runs/NAME."),
]
Processes = Annotated[
    int | None,
    typer.Option(
        "--processes",
        min=1,
        metavar="N",
        show_default=False,
        help="Train with so many processes on this machine, with GPUs one for each.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", callback=show.silence, help="Say nothing on stderr but errors.")]
ModelFolder = Annotated[
    Path,
    typer.Argument(metavar="MODEL", show_default=False, help="A run folder, a checkpoint folder or an exported model."),
]
Models = Annotated[
    list[Path],
    typer.Argument(
        metavar="MODEL",
        show_default=False,
        help="A run folder, a checkpoint folder or an exported model; several of one vocabulary work together.",
    ),
]
Input = Annotated[str, typer.Option("--input", "-i", metavar="FILE", help="Text to read; - is stdin.")]
Output = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="File to write; - is stdout.")]
OnBadBytes = Annotated[
    Literal["error", "replace"],
    typer.Option(
        "--on-bad-bytes", help="Invalid UTF-8: stop and name file, line and byte, or put U+FFFD in its place and count."
    ),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="LANG",
        show_default=False,
        help="Language to translate to, of a model with tags: de is --tag '<2de>'.",
    ),
]
TagOption = Annotated[
    str | None,
    typer.Option(
        "--tag", metavar="TAG", show_default=False, help="Tag before every line, of a model that was trained with tags."
    ),
]

ContextOption = Annotated[
    list[str] | None,
    typer.Option(
        "--context",
        metavar="TEXT",
        show_default=False,
        help="A sentence before it, of a model that reads those before each; may repeat, the oldest first.",
    ),
]


def asked_tag(to: str | None, tag: str | None) -> str:
    """The tag that the two options ask for, or nothing."""
    if to and tag:
        raise typer.BadParameter(f"--to {to} is a tag of its own; leave --tag out")
    from nmt.search.control.request import tag_of

    return tag_of(to) if to else tag or ""


Device = Annotated[str, typer.Option("--device", metavar="NAME", help="auto, cpu, cuda or cuda:N.")]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, metavar="N", show_default=False, help="CPU threads; otherwise torch's choice."),
]
