"""nmt score: sacrebleu scores with their signatures, and how far they may be trusted."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import typer

from . import score_options as options
from . import show
from .options import OnBadBytes, Quiet

if TYPE_CHECKING:
    from nmt.score.metric import Buildable


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
    from nmt.corpus.lines import open_lines
    from nmt.score.comet import PROGRAM, Comet
    from nmt.score.config import named
    from nmt.score.report import line
    from nmt.score.sections import lines
    from nmt.score.study import Questions, study
    from nmt.score.texts import read_texts
    from nmt.wording import counted

    references = [*(reference or []), *(ref or [])]
    if not references:
        raise typer.BadParameter("a reference file is missing")
    if paired_bootstrap and paired_ar:
        raise typer.BadParameter("--paired-bootstrap and --paired-ar are two tests; choose one")
    if samples and not (confidence or paired_bootstrap or paired_ar):
        raise typer.BadParameter("--samples needs --confidence, --paired-bootstrap or --paired-ar")
    if training and "frequency" not in (by or []):
        raise typer.BadParameter("--training needs --by frequency")
    if worst and len(input_ or []) > 2:
        raise typer.BadParameter("--worst shows one system or compares two")
    if comet and not source:
        raise typer.BadParameter("--comet needs --source FILE")
    if comet_program and not comet:
        raise typer.BadParameter("--comet-program needs --comet MODEL")
    metrics: list[Buildable] = [*named(metric or [options.MetricName.BLEU], tokenize, lowercase)]
    asked = Questions(
        sentences=sentence,
        confidence=confidence,
        test="bootstrap" if paired_bootstrap else "ar" if paired_ar else None,
        samples=samples or 0,
        by=tuple(by or ()),
        training=training,
        worst=worst,
        check=check,
    )
    program = comet_program or PROGRAM
    scorer = Comet.find(comet, program, os.environ, len(references)) if comet else None
    inputs = input_ or ["-"]
    for path in inputs:
        show.awaits(path)
    texts = read_texts(inputs, references, source, on_bad_bytes)
    if scorer:
        show.say(f"COMET: {program} scores {len(inputs)} × {counted(len(texts), 'line')}")
        texts, found = scorer.score(texts)
        metrics.append(found)
    answer = study(texts, metrics, language, asked)
    for text in dict.fromkeys(text for result in answer.results for text in result.cautions):
        show.caution(text)
    for result in answer.results if sentence else ():
        for value in result.scores:
            show.say(f"all lines: {line(value)}; single lines with effective order")
    with open_lines("-") as stdout:
        for row in lines(answer, "json" if json else form, details):
            stdout.write(row if isinstance(row, str) else show.painted(row))
