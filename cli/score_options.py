"""The options of `nmt score`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Optional

import typer


class MetricName(StrEnum):
    """What --metric takes."""

    BLEU = "bleu"
    CHRF = "chrf"
    CHRF_WORDS = "chrf++"
    TER = "ter"
    BLEU_2017 = "bleu-2017"


def _known(name: str | None) -> str | None:
    from typing import get_args

    from nmt.score.config import Tokenizer

    if name is not None and name not in get_args(Tokenizer):
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(get_args(Tokenizer))}")
    return name


def _code(language: str) -> str:
    from nmt.score.languages import language_problem

    if problem := language_problem(language):
        raise typer.BadParameter(problem)
    return language


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
Hypotheses = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--input",
        "-i",
        "--hyp",
        "--hypothesis",
        metavar="FILE",
        show_default=False,
        help="Translations to score; repeat it to compare systems. Otherwise stdin.",
    ),
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
    typer.Option(
        "--language",
        "--tgt-lang",
        "-l",
        metavar="LANG",
        callback=_code,
        help="Target language, by its code, such as zh: chooses BLEU's tokenizer.",
    ),
]
Tokenize = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--tokenize", "--tok", metavar="NAME", callback=_known, help="BLEU's tokenizer, whatever the language."
    ),
]
Lowercase = Annotated[bool, typer.Option("--lowercase", "--lc", help="Compare in lower case.")]
Sentence = Annotated[bool, typer.Option("--sentence", help="A line of scores for each sentence, metrics between tabs.")]
Confidence = Annotated[bool, typer.Option("--confidence", "--ci", help="95 % confidence intervals, by bootstrap.")]
PairedBootstrap = Annotated[
    bool,
    typer.Option("--paired-bootstrap", "--paired-bs", help="Test each system against the first by paired bootstrap."),
]
PairedAr = Annotated[
    bool, typer.Option("--paired-ar", help="Test each system against the first by approximate randomisation.")
]
Samples = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--samples",
        "--confidence-n",
        "--paired-bs-n",
        "--paired-ar-n",
        min=2,
        metavar="N",
        show_default=False,
        help="Resamples or trials. Otherwise 1000, and 10,000 of --paired-ar.",
    ),
]
By = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--by",
        metavar="WHAT",
        show_default=False,
        help="Scores of groups of lines: length (of the reference), source-length, or a FILE with a tag a line; "
        "frequency: F-scores of words by how often they stand in --training. May be repeated.",
    ),
]
Comet = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--comet",
        metavar="MODEL",
        show_default=False,
        help="COMET too, by the user's own comet-score, offline: a model folder or its .ckpt. Needs --source.",
    ),
]
CometProgram = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--comet-program",
        metavar="FILE",
        show_default=False,
        help="The program of --comet; otherwise that on the PATH.",
    ),
]
Training = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--training", metavar="FILE", show_default=False, help="Target side of the training text, for --by frequency."
    ),
]
Worst = Annotated[
    int,
    typer.Option(
        "--worst",
        min=0,
        metavar="N",
        show_default=False,
        help="Show the N worst lines by the first metric; of two systems, the N lines in which they differ most.",
    ),
]
Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="List lines that look wrong: changed numbers, links and placeholders, copies, loops, lengths, blanks.",
    ),
]
Details = Annotated[
    bool, typer.Option("--details", help="N-gram precisions, brevity penalty, lengths and their ratio.")
]
Format = Annotated[
    Literal["text", "markdown", "latex", "json"], typer.Option("--format", "-f", help="How the tables are written.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object with values unrounded and all details.")]
