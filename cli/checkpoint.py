"""nmt checkpoint: what a model folder holds, the mean of several, and models for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from . import show as display
from .help import Command, Group
from .options import ModelFolder, Quiet

app = typer.Typer(
    cls=Group,
    help="Look into model folders, average them, export them.\n\nExample: nmt checkpoint show runs/sample",
    rich_markup_mode=None,
    no_args_is_help=True,
)
Models = Annotated[
    list[Path],
    typer.Argument(metavar="MODEL", show_default=False, help="A run folder, or the checkpoint folders to average."),
]


@app.command(cls=Command)
def show(model: ModelFolder, quiet: Quiet = False) -> None:
    """Print what MODEL holds: settings, sizes, vocabulary, origin; of a run, also every checkpoint with its scores.

    Reads the folder; writes to stdout.

    Example: nmt checkpoint show runs/sample
    """
    from nmt.checkpoint.report import about, checkpoints
    from nmt.score.report import table

    for line in table(about(model)):
        print(line)
    if rows := checkpoints(model):
        print()
        for line in table(rows):
            print(line)


@app.command(cls=Command)
def average(
    models: Models,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", show_default=False, help="Folder to write.")],
    last: Annotated[
        int | None, typer.Option(min=1, metavar="N", show_default=False, help="Average a run's newest N.")
    ] = None,
    best: Annotated[
        int | None, typer.Option(min=1, metavar="N", show_default=False, help="Average a run's best N by validation.")
    ] = None,
    by: Annotated[Literal["loss", "bleu", "chrf"], typer.Option(help="What --best goes by.")] = "bleu",
    quiet: Quiet = False,
) -> None:
    """Average checkpoints into a model folder that is complete in itself.

    Reads the checkpoint folders named, or those that --last or --best choose of one run; writes DIR, whole. The order
    in which they are named does not matter.

    Example: nmt checkpoint average runs/sample --last 5 --output averaged
    """
    from nmt.checkpoint.average import average_named

    if last and best:
        raise typer.BadParameter("--last and --best do not go together")
    if (last or best) and len(models) > 1:
        raise typer.BadParameter("--last and --best choose among the checkpoints of one run; name the run alone")
    if not (last or best) and len(models) == 1:
        raise typer.BadParameter("one MODEL alone has no mean; add --last N or --best N, or name several checkpoints")
    display.progress(average_named(models, output, last=last, best=best, by=by))


@app.command(cls=Command)
def export(
    model: ModelFolder,
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", show_default=False, help="Folder to write.")],
    to: Annotated[
        Literal["ctranslate2", "huggingface", "safetensors"],
        typer.Option(
            "--to",
            show_default=False,
            help="ctranslate2, huggingface (transformers), or safetensors: a model folder of our own, complete.",
        ),
    ],
    quantization: Annotated[
        Literal["none", "int8", "float16"], typer.Option(help="How ctranslate2 stores the weights.")
    ] = "none",
    verify: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Source text on which the export for ctranslate2 and the model are compared before it is kept.",
        ),
    ] = None,
    least: Annotated[
        float,
        typer.Option(
            "--verify-least",
            min=0,
            max=100,
            metavar="PERCENT",
            help="Lines that must have the same greedy translation.",
        ),
    ] = 90.0,
    quiet: Quiet = False,
) -> None:
    """Write MODEL for another program, with its subword model and a README that says how to use it.

    Reads the model folder; writes OUTPUT, whole, and replaces nothing there but an earlier export. A model that the
    format cannot express is refused. --verify tells how many lines are translated the same, greedily.

    Example: nmt checkpoint export runs/sample sample-ct2 --to ctranslate2
    """
    from nmt.checkpoint.export import export as write

    if quantization != "none" and to != "ctranslate2":
        raise typer.BadParameter(f"--quantization {quantization} goes with --to ctranslate2 only")
    if verify and to != "ctranslate2":
        raise typer.BadParameter("--verify goes with --to ctranslate2 only")
    display.progress(write(model, output, to, quantization, verify, least))
