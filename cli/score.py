"""nmt score: sacrebleu scores with their signatures."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Optional

import typer

from . import show
from .options import OnBadBytes, Quiet


class MetricName(StrEnum):
    """What --metric takes."""

    BLEU = "bleu"
    CHRF = "chrf"
    CHRF_WORDS = "chrf++"
    TER = "ter"


def _known(name: str | None) -> str | None:
    from typing import get_args

    from nmt.score.config import Tokenizer

    if name is not None and name not in get_args(Tokenizer):
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(get_args(Tokenizer))}")
    return name


References = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Argument(metavar="REFERENCE", show_default=False, help="Reference translations, one or several files."),
]
MoreReferences = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--ref", "--reference", metavar="FILE", show_default=False, help="A reference, by name; may be repeated."
    ),
]
Hypothesis = Annotated[
    str,
    typer.Option("--input", "-i", "--hyp", "--hypothesis", metavar="FILE", help="Translations to score; - is stdin."),
]
Source = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--source", metavar="FILE", show_default=False, help="The source: warns of copied lines and lost numbers."
    ),
]
Metrics = Annotated[
    Optional[list[MetricName]],  # noqa: UP045
    typer.Option("--metric", "-m", show_default=False, help="A metric; may be repeated. Otherwise bleu."),
]
Language = Annotated[
    str,
    typer.Option("--language", "--tgt-lang", "-l", metavar="LANG", help="Target language: chooses BLEU's tokenizer."),
]
Tokenize = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--tokenize", "--tok", metavar="NAME", callback=_known, help="BLEU's tokenizer, whatever the language."
    ),
]
Lowercase = Annotated[bool, typer.Option("--lowercase", "--lc", help="Compare in lower case.")]
Sentence = Annotated[bool, typer.Option("--sentence", help="A line of scores for each sentence, metrics between tabs.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object with values unrounded and all details.")]


def score(
    reference: References = None,
    ref: MoreReferences = None,
    input_: Hypothesis = "-",
    source: Source = None,
    metric: Metrics = None,
    language: Language = "",
    tokenize: Tokenize = None,
    lowercase: Lowercase = False,
    sentence: Sentence = False,
    json: Json = False,
    on_bad_bytes: OnBadBytes = "error",
    quiet: Quiet = False,
) -> None:
    """Score translations against REFERENCE..., all raw text, as sacrebleu does.

    Reads one sentence a line, translations on stdin unless --input names a file; prints one line for each metric. A
    blank line in one of several references means that the sentence lacks that one.

    Example: nmt translate runs/sample --input test.en | nmt score test.de --language de
    """
    from nmt.corpus.lines import open_lines
    from nmt.score.config import named
    from nmt.score.evaluate import evaluate
    from nmt.score.report import line, output

    references = [*(reference or []), *(ref or [])]
    if not references:
        raise typer.BadParameter("a reference file is missing")
    metrics = named(metric or [MetricName.BLEU], tokenize, lowercase)
    show.awaits(input_)
    result = evaluate(
        input_, references, metrics, language, source=source, on_bad_bytes=on_bad_bytes, sentences=sentence
    )
    for text in result.cautions:
        show.caution(text)
    if sentence:
        for value in result.scores:
            show.say(f"all lines: {line(value)}; single lines with effective order")
    with open_lines("-") as stdout:
        for text in output(result, json):
            stdout.write(text)
