"""nmt translate: raw text in, raw text out."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal, Optional

import typer

from . import control, show
from .options import Device, Input, Models, OnBadBytes, Output, Quiet, TagOption, Threads, To, asked_tag, count


def average_penalty(text: str) -> str:
    """What fairseq's --lenpen and Marian's --normalize mean by a number."""
    try:
        number = f"{float(text):.6f}".rstrip("0").rstrip(".")
    except ValueError:
        return text  # a name: checked with all other settings
    return f"average:{number}"


Beam = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--beam",
        "--beam-size",
        "-b",
        min=1,
        metavar="N",
        show_default=False,
        help="Hypotheses kept alive; 1 is greedy search. Otherwise the model's setting.",
    ),
]
LengthPenalty = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--length-penalty",
        metavar="NAME:A",
        show_default=False,
        help="gnmt:A divides log-probability by ((5+|Y|)/6)^A, average:A by |Y|^A, none by nothing; |Y| counts the "
        "end mark. Otherwise the model's setting.",
    ),
]
AveragePenalty = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--lenpen", "--normalize", metavar="A", parser=average_penalty, show_default=False, help="average:A, by number."
    ),
]
NBest = Annotated[
    int, typer.Option("--n-best", "--nbest", min=1, metavar="K", help="Translations of each line, at most the beam.")
]
Form = Annotated[
    Optional[Literal["text", "nbest", "jsonl", "fairseq"]],  # noqa: UP045
    typer.Option(
        "--format", show_default=False, help="How to write; otherwise text, nbest for --n-best, jsonl for jsonl."
    ),
]
InputForm = Annotated[
    Literal["text", "jsonl"],
    typer.Option("--input-format", help="jsonl reads objects with a field source; their other fields pass through."),
]
Scores = Annotated[bool, typer.Option("--scores", help="Write the model's scores too: natural logarithms.")]
MaxExtra = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--max-extra-tokens",
        min=0,
        metavar="N",
        show_default=False,
        help="A translation has at most this many tokens more than its source, end marks not counted.",
    ),
]
MaxSource = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--max-source-tokens",
        min=2,
        metavar="N",
        show_default=False,
        help="Split lines of more tokens than that, end mark counted. Otherwise the model's limit.",
    ),
]
BatchTokens = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--batch-tokens",
        "--max-tokens",
        parser=count,
        metavar="N",
        show_default=False,
        help="Most source tokens of one batch: speed and memory, never the result.",
    ),
]
BatchLines = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--batch-size",
        "--mini-batch",
        parser=count,
        metavar="N",
        show_default=False,
        help="Most lines of one batch.",
    ),
]
Buffer = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--buffer",
        "--buffer-size",
        parser=count,
        metavar="N",
        show_default=False,
        help="Lines read ahead, to sort them by length; input that pauses is translated at once.",
    ),
]
Precision = Annotated[
    Optional[Literal["auto", "float32", "bfloat16", "int8"]],  # noqa: UP045
    typer.Option(
        "--precision",
        show_default=False,
        help="Arithmetic of the model: bfloat16 and int8 are faster and round, auto is the fastest on this machine. "
        "Otherwise the model's setting.",
    ),
]
Workers = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--workers",
        min=1,
        metavar="N",
        show_default=False,
        help="Batches computed at the same time, on their share of the threads; otherwise one a thread.",
    ),
]


def translate(
    models: Models,
    input_: Input = "-",
    output: Output = "-",
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    lenpen: AveragePenalty = None,
    n_best: NBest = 1,
    form: Form = None,
    input_form: InputForm = "text",
    scores: Scores = False,
    max_extra_tokens: MaxExtra = None,
    max_source_tokens: MaxSource = None,
    batch_tokens: BatchTokens = None,
    batch_lines: BatchLines = None,
    buffer: Buffer = None,
    precision: Precision = None,
    min_length: control.MinLength = None,
    max_length: control.MaxLength = None,
    min_length_ratio: control.MinRatio = None,
    max_length_ratio: control.MaxRatio = None,
    no_repeat_ngram: control.NoRepeat = None,
    repetition_penalty: control.RepetitionPenalty = None,
    prefix: control.Prefix = None,
    require: control.Require = None,
    forbid: control.Forbid = None,
    glossary: control.GlossaryFile = None,
    protect: control.Protect = None,
    keep: control.Keep = None,
    sample: control.Sample = False,
    temperature: control.Temperature = None,
    top_k: control.TopK = None,
    top_p: control.TopP = None,
    seed: control.Seed = None,
    mbr: control.Mbr = None,
    alignment: control.Alignment = False,
    to: To = None,
    tag: TagOption = None,
    on_bad_bytes: OnBadBytes = "error",
    device: Device = "auto",
    threads: Threads = None,
    workers: Workers = None,
    quiet: Quiet = False,
) -> None:
    """Translate raw text with MODEL, line for line; several models of one vocabulary average their probabilities.

    Reads one sentence a line and writes its translation as a line of raw text, in the same order. A blank line gives
    an empty one; lines too long for the model are split, translated, rejoined and named on stderr.

    Example: nmt translate runs/sample < test.en > test.de
    """
    if form == "text" and n_best > 1 and not mbr:
        raise typer.BadParameter("text has one line for each line; take --format nbest, jsonl or fairseq with --n-best")
    if mbr and n_best == 1:
        raise typer.BadParameter("--mbr chooses among the translations that --n-best K asks for")
    if prefix is not None and str(prefix) == input_ == "-":
        raise typer.BadParameter("only one of --input and --prefix can be stdin")
    shapes = {"--temperature": temperature, "--top-k": top_k, "--top-p": top_p, "--seed": seed}
    if not sample and input_form == "text" and (idle := [name for name, value in shapes.items() if value is not None]):
        raise typer.BadParameter(f"{', '.join(idle)} would change nothing without --sample")
    if length_penalty is not None and lenpen is not None:
        raise typer.BadParameter("--lenpen and --length-penalty are two names for one thing")
    from nmt.checkpoint.ensemble import load_together
    from nmt.search.files import translate_file

    asked = replace(control.asked_of_all(require, forbid, glossary, protect, keep), tag=asked_tag(to, tag))
    translator = load_together(models, device, threads)
    show.awaits(input_)
    show.progress(
        translate_file(
            translator,
            input_,
            output,
            form=form or ("jsonl" if input_form == "jsonl" else "nbest" if n_best > 1 and not mbr else "text"),
            source_form=input_form,
            n_best=n_best,
            scores=scores,
            on_bad_bytes=on_bad_bytes,
            prefix=prefix,
            common=asked,
            alignment=alignment,
            reorder=control.reorder(mbr),
            beam=beam,
            length_penalty=length_penalty or lenpen,
            max_extra_tokens=max_extra_tokens,
            max_source_tokens=max_source_tokens,
            batch_tokens=batch_tokens,
            batch_lines=batch_lines,
            buffer_lines=buffer,
            precision=precision,
            workers=workers,
            min_length=min_length,
            max_length=max_length,
            min_length_ratio=min_length_ratio,
            max_length_ratio=max_length_ratio,
            no_repeat_ngram=no_repeat_ngram,
            repetition_penalty=repetition_penalty,
            sample=sample,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
        )
    )
