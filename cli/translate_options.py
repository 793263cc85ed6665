"""The options of `nmt translate` that are neither control over a translation nor a choice among several."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from .options import count, option


def average_penalty(text: str) -> str:
    """What fairseq's --lenpen and Marian's --normalize mean by a number."""
    try:
        number = f"{float(text):.6f}".rstrip("0").rstrip(".")
    except ValueError:
        return text  # a name: checked with all other settings
    return f"average:{number}"


Beam = Annotated[
    int | None,
    option(
        "--beam",
        "--beam-size",
        "-b",
        min=1,
        help="Hypotheses kept alive; 1 is greedy search. Otherwise the model's setting.",
    ),
]
LengthPenalty = Annotated[
    str | None,
    option(
        "--length-penalty",
        metavar="NAME:A",
        help="gnmt:A divides log-probability by ((5+|Y|)/6)^A, average:A by |Y|^A, none by nothing; |Y| counts the "
        "end mark. Otherwise the model's setting.",
    ),
]
AveragePenalty = Annotated[
    str | None,
    option("--lenpen", "--normalize", metavar="A", parser=average_penalty, help="average:A, by number."),
]
NBest = Annotated[
    int, typer.Option("--n-best", "--nbest", min=1, metavar="K", help="Translations of each line, at most the beam.")
]
Form = Annotated[
    Literal["text", "nbest", "jsonl", "fairseq"] | None,
    option("--format", metavar=None, help="How to write; otherwise text, nbest for --n-best, jsonl for jsonl."),
]
InputForm = Annotated[
    Literal["text", "jsonl"],
    typer.Option("--input-format", help="jsonl reads objects with a field source; their other fields pass through."),
]
Scores = Annotated[bool, typer.Option("--scores", help="Write the model's scores too: natural logarithms.")]
MaxExtra = Annotated[
    int | None,
    option(
        "--max-extra-tokens",
        min=0,
        help="A translation has at most this many tokens more than its source, end marks not counted.",
    ),
]
MaxSource = Annotated[
    int | None,
    option(
        "--max-source-tokens",
        min=2,
        help="Split lines of more tokens than that, end mark counted. Otherwise the model's limit.",
    ),
]
BatchTokens = Annotated[
    int | None,
    option(
        "--batch-tokens",
        "--max-tokens",
        parser=count,
        help="Most source tokens of one batch: speed and memory, never the result.",
    ),
]
BatchLines = Annotated[
    int | None, option("--batch-size", "--mini-batch", parser=count, help="Most lines of one batch.")
]
Buffer = Annotated[
    int | None,
    option(
        "--buffer",
        "--buffer-size",
        parser=count,
        help="Lines read ahead, to sort them by length; input that pauses is translated at once.",
    ),
]
Precision = Annotated[
    Literal["auto", "float32", "bfloat16", "float16", "int8"] | None,
    option(
        "--precision",
        metavar=None,
        help="Arithmetic of the model: bfloat16, float16 (on GPUs) and int8 (on processors) are faster and round, "
        "auto is the fastest on this machine. Otherwise the model's setting.",
    ),
]
Workers = Annotated[
    int | None,
    option(
        "--workers",
        metavar="N",
        min=1,
        help="Batches computed at the same time: on their share of the threads, otherwise one a thread; with GPUs, one "
        "on each of so many.",
    ),
]
Interactive = Annotated[
    bool,
    typer.Option("--interactive", help="Translate what is typed at a prompt; :help there tells what can be changed."),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Keep what is done of --output if interrupted; go on from it when called again with the same settings.",
    ),
]
