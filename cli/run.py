"""nmt run: the stages of a recipe that are stale, in order."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import group, show
from .options import Overrides, Processes, Quiet, RecipeFile, RunDir

if TYPE_CHECKING:
    from nmt.recipe import Recipe
    from nmt.stages.stage import RunFolder


def _known(value: str | list[str] | None) -> str | list[str] | None:
    """Stage names as they are; wrong ones are wrong usage, with the nearest right one."""
    from nmt.schema import nearest
    from nmt.stages.stage import STAGES

    for name in [value] if isinstance(value, str) else value or []:
        if name not in STAGES:
            near = nearest(name, STAGES)
            guess = f"did you mean {near}?" if near else f"the stages are {', '.join(STAGES)}"
            raise typer.BadParameter(f"{name!r} is no stage; {guess}")
    return value


From = Annotated[
    str | None,
    typer.Option("--from", metavar="STAGE", callback=_known, show_default=False, help="First stage to consider."),
]
To = Annotated[
    str | None,
    typer.Option("--to", metavar="STAGE", callback=_known, show_default=False, help="Last stage to consider."),
]
Only = Annotated[
    str | None,
    typer.Option("--only", metavar="STAGE", callback=_known, show_default=False, help="The one stage to consider."),
]
Force = Annotated[
    list[str] | None,
    typer.Option(
        "--force", metavar="STAGE", callback=_known, show_default=False, help="Run it though it is fresh; may repeat."
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Only print which stages would run, and why; name files that are missing or do not fit."
    ),
]


def run(
    recipe: RecipeFile,
    from_: From = None,
    to: To = None,
    only: Only = None,
    force: Force = None,
    dry_run: DryRun = False,
    processes: Processes = None,
    set_: Overrides = None,
    run_dir: RunDir = None,
    quiet: Quiet = False,
) -> None:
    """Run the stages of RECIPE that are stale, in order, and say why each is.

    The stages are preprocess, bpe, train, average, translate and score. One is stale when its settings, its input
    files or the results of the stage before have changed, or when it hasn't finished: after an interruption the same
    command goes on.

    Reads the recipe and the files it names; writes the run folder, runs/NAME or --run-dir; prints the scores.

    Example: nmt run recipes/sample.toml
    """
    if only and (from_ or to):
        raise typer.BadParameter("--only stands alone, without --from and --to")
    perform(recipe, set_ or [], run_dir, (from_, to, only), force or [], dry_run, processes)


def perform(
    file: Path,
    overrides: Sequence[str],
    run_dir: Path | None,
    bounds: tuple[str | None, str | None, str | None],
    force: Sequence[str] = (),
    dry_run: bool = False,
    processes: int | None = None,
) -> None:
    """Run the recipe in `file` from, to, or only (`bounds`) some stages, or print what would run."""
    from nmt.errors import RecipeError
    from nmt.recipe import read
    from nmt.stages.run import choose, follow, plan, run_stages, where
    from nmt.train.thrift import be_thrifty

    recipe = read(file, overrides)
    folder = where(recipe, run_dir)
    try:
        stages = choose(*bounds)
    except RecipeError as problem:
        raise typer.BadParameter(problem.problem) from problem
    left_out = [name for name in force if name not in [stage.name for stage in stages]]
    if left_out:
        raise typer.BadParameter(f"--force {left_out[0]}: that stage is not among those to run")
    if dry_run or recipe.train.rises_to_the_end():
        planned = {stage.name: reasons for stage, reasons in plan(recipe, folder, stages, force)}
        _refuse_rising(recipe, planned)
    if dry_run:
        _tell(file, recipe, folder, planned)
        return
    seat = group.seat(processes)
    if seat is None and processes and processes > 1:
        group.launch(processes, _arguments(file, overrides, folder.path, bounds, force))
        return
    if any(stage.name == "train" for stage in stages):
        be_thrifty(os.environ)
    with group.joined(seat, recipe) as ranks:
        if ranks and not ranks.leads:
            show.silence(True)
            follow(recipe, folder, ranks)
            return
        show.progress(run_stages(recipe, folder, stages, force, ranks), steps=recipe.train.steps)
    if stages[-1].name == "score":
        report(file, folder, str(recipe.languages.source))
    elif stages[-1].name in {"train", "average"}:
        show.say(f"next: nmt translate {folder.path} --input FILE")


def _refuse_rising(recipe: Recipe, planned: Mapping[str, Sequence[str]]) -> None:
    """Raises RecipeError where training would run whose rate never falls: hours for a poor model."""
    from nmt.errors import RecipeError

    problem = recipe.train.rises_to_the_end()
    if problem and planned.get("train"):
        steps = recipe.train.steps or 0
        fitting = steps // 10 or int(steps > 1)
        raise RecipeError(problem, f"set the warmup too: --set train.schedule.warmup_steps={fitting}")


def _tell(file: Path, recipe: Recipe, folder: RunFolder, planned: Mapping[str, Sequence[str]]) -> None:
    """What would run, where, and why. Raises RecipeError for problems with the files it would read."""
    from nmt.errors import RecipeError
    from nmt.stages.check import soon_found
    from nmt.stages.run import writer

    show.say(f"run folder: {folder.path}")
    if busy := writer(folder):
        show.caution(f"{busy}: what stands here is of this moment")
    for name, reasons in planned.items():
        print(f"{name}: {'; '.join(reasons) or 'nothing to do'}")
    if not planned.get("preprocess"):
        return
    if problems := soon_found(recipe):
        raise RecipeError("\n".join(problems), f"mend these; nmt recipe check {file} looks for more")
    show.say(f"nmt recipe check {file}    looks for problems before anything slow starts")


def _arguments(
    file: Path,
    overrides: Sequence[str],
    folder: Path,
    bounds: tuple[str | None, str | None, str | None],
    force: Sequence[str],
) -> list[str]:
    """The arguments of `nmt` that mean the same run, for each of its processes."""
    options = [*zip(("--from", "--to", "--only"), bounds, strict=True), ("--run-dir", str(folder))]
    options += [*(("--set", each) for each in overrides), *(("--force", each) for each in force)]
    return ["run", str(file), *(f"{name}={value}" for name, value in options if value is not None)]


def report(file: Path, folder: RunFolder, source: str) -> None:
    """The table of scores and where every file lies, on stdout; what to type next, on stderr."""
    from nmt.files import read_json
    from nmt.score.report import rows, table

    scores = folder.scores / "scores.json"
    sets = read_json(scores).get("sets", []) if scores.is_file() else []
    lines = [*table(rows(sets)), "", *table(_places(folder))] if sets else table(_places(folder))
    for line in lines:
        print(line)
    show.say(f"next: nmt translate {folder.path} --input FILE.{source}    translate your own text")
    show.say(f"      nmt checkpoint show {folder.path}    what the model holds")
    show.say(f"      nmt recipe show {file}    every setting")


def _places(folder: RunFolder) -> list[tuple[str, str]]:
    places = (
        ("model", folder.model),
        ("translations", folder.translations),
        ("scores", folder.scores / "scores.json"),
        ("checkpoints", folder.checkpoints),
        ("journal", folder.journal),
        ("curves", folder.curves),
        ("validation", folder.validation),
        ("tensorboard", folder.tensorboard),
        ("recipe", folder.recipe),
    )
    return [(name, str(path)) for name, path in places if path.exists()]
