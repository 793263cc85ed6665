"""nmt recipe: write one for one's own files, print one resolved, check one or tell its cost without running it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import show
from .estimate import estimate
from .help import Command, Group
from .options import Overrides, Quiet, RecipeFile, RunDir

app = typer.Typer(
    cls=Group,
    help="Write a recipe, print it resolved, check it, or tell what it costs.\n\n"
    "Example: nmt recipe new --source a.en --target a.de",
    rich_markup_mode=None,
    no_args_is_help=True,
)
Training = Annotated[Path, typer.Option(metavar="FILE", show_default=False, help="Training text, one sentence a line.")]
HeldOut = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", show_default=False, help="Held-out text; otherwise random lines of the training text."
    ),
]
Lang = Annotated[
    str, typer.Option(metavar="CODE", show_default=False, help="Language; otherwise guessed from the file's suffix.")
]


@app.command(cls=Command)
def new(
    source: Training,
    target: Training,
    valid_source: HeldOut = None,
    valid_target: HeldOut = None,
    test_source: HeldOut = None,
    test_target: HeldOut = None,
    source_lang: Lang = "",
    target_lang: Lang = "",
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The recipe to write.")] = Path(
        "recipe.toml"
    ),
    name: Annotated[
        str, typer.Option(metavar="NAME", show_default=False, help="Name of the run; otherwise the recipe's.")
    ] = "",
    start_from: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL", show_default=False, help="Fine-tune this model: its languages, vocabulary and sizes."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of every random choice.")] = 1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write a commented recipe for your own parallel text, with settings that suit its size.

    Reads the training text once, line i of both files being a pair; writes the recipe, and held-out sets beside it
    where none are named.

    Example: nmt recipe new --source train.en --target train.de --output my.toml
    """
    from nmt.stages.propose import Wish, propose

    wish = Wish(
        source,
        target,
        _pair(valid_source, valid_target, "valid"),
        _pair(test_source, test_target, "test"),
        source_lang,
        target_lang,
        name,
        seed,
        start_from,
    )
    show.progress(propose(wish, output, overwrite))
    show.say(f"next: nmt recipe check {output}    look for problems before anything slow starts")
    show.say(f"      nmt run {output}    train, translate and score")


def _pair(source: Path | None, target: Path | None, what: str) -> tuple[Path, Path] | None:
    if source is None and target is None:
        return None
    if source is None or target is None:
        raise typer.BadParameter(f"--{what}-source and --{what}-target belong together")
    return source, target


@app.command("show", cls=Command)
def show_(recipe: RecipeFile, set_: Overrides = None) -> None:
    """Print RECIPE resolved: every setting, those left out with their defaults, paths absolute.

    Reads the recipe; writes TOML to stdout, which is a recipe itself.

    Example: nmt recipe show recipes/sample.toml
    """
    from nmt.recipe import dump, read

    print(dump(read(recipe, set_ or [])), end="")


@app.command(cls=Command)
def check(recipe: RecipeFile, set_: Overrides = None, run_dir: RunDir = None, quiet: Quiet = False) -> None:
    """Look for all that would stop or spoil a run: files, line counts, encodings, sizes, disk space.

    Reads the recipe and the files it names; writes nothing. Exits with 1 when there are problems, all of them named.

    Example: nmt recipe check recipes/sample.toml
    """
    from nmt.errors import RecipeError
    from nmt.recipe import read
    from nmt.stages.check import problems
    from nmt.stages.reach import cautions
    from nmt.stages.run import where

    resolved = read(recipe, set_ or [])
    found = list(dict.fromkeys(problems(resolved, where(resolved, run_dir))))
    if found:
        offered = [made.file for load in resolved.data.download for made in load.extract or (load,)]
        lacking = any(not file.exists() for file in offered)
        fetch = f"nmt download {recipe} fetches files; " if lacking else ""
        raise RecipeError("\n".join(found), f"mend these; {fetch}nmt recipe check {recipe} looks again")
    for text in cautions(resolved):
        show.caution(text)
    show.say(f"{recipe}: no problems; nmt run {recipe}")


app.command(cls=Command)(estimate)
