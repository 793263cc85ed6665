"""nmt rescore: the model's own log-probability of given translations."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from . import show
from .options import Device, ModelFolder, OnBadBytes, Output, Quiet, TagOption, Threads, To, asked_tag
from .translate_options import BatchTokens, Buffer, Precision

Source = Annotated[
    str, typer.Option("--source", "-s", metavar="FILE", show_default=False, help="Source text; - is stdin.")
]
Target = Annotated[
    str, typer.Option("--target", "-t", metavar="FILE", show_default=False, help="Its translations; - is stdin.")
]
LengthPenalty = Annotated[
    str,
    typer.Option(
        "--length-penalty",
        metavar="NAME:A",
        help="none gives log-probabilities; gnmt:A and average:A the scores that nmt translate ranks by.",
    ),
]
Form = Annotated[Literal["text", "jsonl"], typer.Option("--format", help="A number a line, or all that is known.")]


def rescore(
    model: ModelFolder,
    source: Source,
    target: Target,
    output: Output = "-",
    length_penalty: LengthPenalty = "none",
    form: Form = "text",
    batch_tokens: BatchTokens = None,
    buffer: Buffer = None,
    precision: Precision = None,
    to: To = None,
    tag: TagOption = None,
    on_bad_bytes: OnBadBytes = "error",
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Give MODEL's own log-probability of each line of --target as the translation of its line of --source.

    Reads two files of as many lines each and writes one number a line: the sum over all tokens and the end mark, as
    a natural logarithm. For ranking, and for filtering parallel text.

    Example: nmt rescore runs/sample --source test.en --target test.de
    """
    if source == target == "-":
        raise typer.BadParameter("only one of --source and --target can be stdin")
    from nmt.checkpoint.load import load_translator
    from nmt.search.files import rescore_files

    translator = load_translator(model, device, threads)
    show.progress(
        rescore_files(
            translator,
            source,
            target,
            output,
            form=form,
            on_bad_bytes=on_bad_bytes,
            tag=asked_tag(to, tag),
            length_penalty=length_penalty,
            batch_tokens=batch_tokens,
            buffer_lines=buffer,
            precision=precision,
        ),
        results=output,
    )
