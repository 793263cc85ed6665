"""nmt recipe estimate: what a recipe costs before it is run."""

from __future__ import annotations

from typing import Annotated

import typer

from . import show
from .options import Overrides, Quiet, RecipeFile, RunDir


def estimate(
    recipe: RecipeFile,
    set_: Overrides = None,
    run_dir: RunDir = None,
    gpus: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", show_default=False, help="GPUs of the kind that --gpu names; otherwise 1."),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="Compute the time on this kind of GPU, such as h100, instead of measuring it on this machine.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Write one JSON object.")] = False,
    quiet: Quiet = False,
) -> None:
    """Print what RECIPE costs: parameters, tokens, FLOPs beside the paper's formula, memory and hours of training.

    Reads the recipe, the run's vocabulary and shards where they are there, else some of the training text; writes to
    stdout. Without --gpu, updates are made on this machine for a few seconds to measure their time.

    Example: nmt recipe estimate recipes/sample.toml
    """
    if gpus is not None and gpu is None:
        raise typer.BadParameter(f"--gpus {gpus}: say which with --gpu, such as --gpu h100")
    from nmt.recipe import read
    from nmt.stages.costs_report import as_json, lines
    from nmt.stages.estimate import estimate as estimated
    from nmt.stages.run import where
    from nmt.train.gpus import named

    kind = named(gpu) if gpu is not None else None
    resolved = read(recipe, set_ or [])
    if kind is None:
        show.say("measuring: updates on random ids are made for a few seconds")
    found = estimated(resolved, where(resolved, run_dir), kind, gpus or 1)
    for text in found.cautions:
        show.caution(text)
    for line in as_json(found).splitlines() if json else lines(found):
        print(line)
