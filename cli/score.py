"""nmt score: sacrebleu scores with their signatures, and how far they may be trusted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from . import score_options as options
from . import show
from .options import OnBadBytes, Quiet

if TYPE_CHECKING:
    from nmt.score.comet import Comet
    from nmt.score.metric import Buildable
    from nmt.score.study import Questions, Study


def score(
    reference: options.References = None,
    ref: options.MoreReferences = None,
    input_: options.Hypotheses = None,
    source: options.Source = None,
    metric: options.Metrics = None,
    language: options.Language = "",
    tokenize: options.Tokenize = None,
    lowercase: options.Lowercase = False,
    sentence: options.Sentence = False,
    confidence: options.Confidence = False,
    paired_bootstrap: options.PairedBootstrap = False,
    paired_ar: options.PairedAr = False,
    samples: options.Samples = None,
    by: options.By = None,
    training: options.Training = None,
    worst: options.Worst = 0,
    check: options.Check = False,
    details: options.Details = False,
    comet: options.Comet = None,
    comet_program: options.CometProgram = None,
    form: options.Format = "text",
    json: options.Json = False,
    on_bad_bytes: OnBadBytes = "error",
    quiet: Quiet = False,
) -> None:
    """Score translations against REFERENCE..., all raw text, as sacrebleu does.

    Reads one sentence a line, translations on stdin unless --input names a file; prints one line for each metric, or a
    table where several systems are named. A blank line in one of several references means that the sentence lacks that
    one.

    Example: nmt translate runs/sample --input test.en | nmt score test.de --language de
    """
    given = dict(locals())
    check_usage(given)
    from nmt.score.config import named
    from nmt.score.study import study
    from nmt.score.texts import read_texts
    from nmt.wording import counted

    references, inputs = [*(reference or []), *(ref or [])], input_ or ["-"]
    metrics: list[Buildable] = [*named(metric or [options.MetricName.BLEU], tokenize, lowercase)]
    scorer = _comet(comet, comet_program, len(references)) if comet else None
    for path in inputs:
        show.awaits(path)
    texts = read_texts(inputs, references, source, on_bad_bytes)
    if scorer:
        show.say(f"COMET: {scorer.name} scores {len(inputs)} × {counted(len(texts), 'line')}")
        texts, found = scorer.score(texts)
        metrics.append(found)
    answer = study(texts, metrics, language, _questions(given))
    _tell(answer, sentence)
    _print(answer, "json" if json else form, details)


def check_usage(given: Mapping[str, Any]) -> None:
    """Raises BadParameter for options that contradict each other, and for such as would change nothing."""
    if not (given["reference"] or given["ref"]):
        raise typer.BadParameter("a reference file is missing")
    if given["paired_bootstrap"] and given["paired_ar"]:
        raise typer.BadParameter("--paired-bootstrap and --paired-ar are two tests; choose one")
    if given["samples"] and not any(given[name] for name in ("confidence", "paired_bootstrap", "paired_ar")):
        raise typer.BadParameter("--samples needs --confidence, --paired-bootstrap or --paired-ar")
    if given["training"] and "frequency" not in (given["by"] or []):
        raise typer.BadParameter("--training needs --by frequency")
    if given["worst"] and len(given["input_"] or []) > 2:
        raise typer.BadParameter("--worst shows one system or compares two")
    if given["comet"] and not given["source"]:
        raise typer.BadParameter("--comet needs --source FILE")
    if given["comet_program"] and not given["comet"]:
        raise typer.BadParameter("--comet-program needs --comet MODEL")


def _questions(given: Mapping[str, Any]) -> Questions:
    """What is asked beyond the scores."""
    from nmt.score.study import Questions

    return Questions(
        sentences=given["sentence"],
        confidence=given["confidence"],
        test="bootstrap" if given["paired_bootstrap"] else "ar" if given["paired_ar"] else None,
        samples=given["samples"] or 0,
        by=tuple(given["by"] or ()),
        training=given["training"],
        worst=given["worst"],
        check=given["check"],
    )


def _comet(model: Path, program: str | None, references: int) -> Comet:
    from nmt.score.comet import PROGRAM, Comet

    return Comet.find(model, program or PROGRAM, os.environ, references)


def _tell(answer: Study, sentence: bool) -> None:
    """Cautions, and the scores of all lines where those of single lines are the result."""
    from nmt.score.report import line

    for text in dict.fromkeys(text for result in answer.results for text in result.cautions):
        show.caution(text)
    for result in answer.results if sentence else ():
        for value in result.scores:
            show.say(f"all lines: {line(value)}; single lines with effective order")


def _print(answer: Study, form: str, details: bool) -> None:
    from nmt.corpus.lines import open_lines
    from nmt.score.sections import lines

    with open_lines("-") as stdout:
        for row in lines(answer, form, details):
            stdout.write(row if isinstance(row, str) else show.painted(row))
