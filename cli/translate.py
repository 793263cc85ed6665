"""nmt translate: raw text in, raw text out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from . import choice, control, show
from . import translate_options as options
from .options import Device, Input, Models, OnBadBytes, Output, Quiet, TagOption, Threads, To, asked_tag, option_of

RESUMABLE = 256  # lines read ahead where what an interrupted job has done shall be kept
ASKED = ("require", "forbid", "glossary", "protect", "keep", "lm", "shortlist", "markup")
READ = ("input_", "prefix", "glossary", "lm", "shortlist")  # any of which may be stdin, but one alone


def translate(
    models: Models,
    input_: Input = "-",
    output: Output = "-",
    beam: options.Beam = None,
    length_penalty: options.LengthPenalty = None,
    lenpen: options.AveragePenalty = None,
    n_best: options.NBest = 1,
    form: options.Form = None,
    input_form: options.InputForm = "text",
    scores: options.Scores = False,
    max_extra_tokens: options.MaxExtra = None,
    max_source_tokens: options.MaxSource = None,
    batch_tokens: options.BatchTokens = None,
    batch_lines: options.BatchLines = None,
    buffer_lines: options.Buffer = None,
    precision: options.Precision = None,
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
    markup: control.Markup = False,
    replace_unk: control.ReplaceUnk = False,
    sample: control.Sample = False,
    temperature: control.Temperature = None,
    top_k: control.TopK = None,
    top_p: control.TopP = None,
    seed: control.Seed = None,
    beam_groups: choice.Groups = None,
    diversity: choice.Diversity = None,
    patience: choice.Patience = None,
    coverage_penalty: choice.Coverage = None,
    unique_text: choice.Unique = False,
    lm: choice.LmFile = None,
    lm_weight: choice.LmWeight = None,
    shortlist: choice.ShortlistFile = None,
    rescore_by: choice.RescoreBy = None,
    rescore_weight: choice.RescoreWeight = None,
    mbr: choice.Mbr = None,
    alignment: control.Alignment = False,
    to: To = None,
    tag: TagOption = None,
    interactive: options.Interactive = False,
    resume: options.Resume = False,
    on_bad_bytes: OnBadBytes = "error",
    device: Device = "auto",
    threads: Threads = None,
    workers: options.Workers = None,
    quiet: Quiet = False,
) -> None:
    """Translate raw text with MODEL, line for line; several models of one vocabulary average their probabilities.

    Reads one sentence a line and writes its translation as a line of raw text, in the same order. A blank line gives
    an empty one; lines too long for the model are split, translated, rejoined and named on stderr.

    Example: nmt translate runs/sample < test.en > test.de
    """
    given = dict(locals())
    check_usage(given)
    from nmt.checkpoint.ensemble import load_together
    from nmt.search.control.config import ControlConfig
    from nmt.search.files import translate_file

    given |= {"length_penalty": lenpen if length_penalty is None else length_penalty, "form": _form(given)}
    kept = control.kept(given) if resume else None
    given["buffer_lines"] = RESUMABLE if resume and buffer_lines is None else buffer_lines
    _check_models(models)
    translator = load_together(models, device, threads)
    asked = {name: given[name] for name in ASKED}
    common = replace(control.asked_of_all(translator, **asked), tag=asked_tag(to, tag))
    settings = {name: given[name] for name in ControlConfig.model_fields}
    if interactive:
        from nmt.search.control.session import Session

        from .interactive import converse

        converse(Session(translator, common, n_best, **settings), f"nmt: {', '.join(map(str, models))}")
        return
    for path in (input_, prefix):
        show.awaits(path)
    show.progress(
        translate_file(
            translator,
            input_,
            output,
            form=given["form"],
            source_form=input_form,
            n_best=n_best,
            scores=scores,
            on_bad_bytes=on_bad_bytes,
            prefix=prefix,
            common=common,
            alignment=alignment,
            reorder=choice.reorder(mbr, rescore_by, rescore_weight, translator, given["length_penalty"]),
            resume=kept,
            **settings,
        ),
        results=output,
    )


def _check_models(models: Sequence[Path]) -> None:
    """Raises ModelError for a file behind MODEL that is no model, but most likely the text to translate."""
    from nmt.checkpoint.layout import resolve
    from nmt.errors import ModelError

    for path in models[1:]:
        if path.is_file():
            try:
                resolve(path)
            except ModelError as problem:
                raise ModelError(problem.problem, f"text to translate is named by --input {path}") from problem


def check_usage(given: Mapping[str, Any]) -> None:
    """Raises BadParameter for options that contradict each other, and for such as would change nothing."""
    if given["form"] == "text" and given["n_best"] > 1 and not _reordered(given):
        raise typer.BadParameter("text has one line for each line; take --format nbest, jsonl or fairseq with --n-best")
    if given["length_penalty"] is not None and given["lenpen"] is not None:
        raise typer.BadParameter("--lenpen and --length-penalty are two names for one thing")
    choice.check_choice(given)
    control.check_sampling(given)
    _check_files(given)


def _check_files(given: Mapping[str, Any]) -> None:
    """What is read and written once, and what a conversation has no use for."""
    control.check_stdin({option_of(name.strip("_")): given[name] for name in READ})
    ends = {given["input_"], given["output"]}
    if given["resume"] and "-" in ends:
        raise typer.BadParameter("--resume needs --input FILE and --output FILE")
    idle = ends != {"-"} or given["input_form"] != "text" or _reordered(given)
    if given["interactive"] and (idle or any(given[name] for name in ("resume", "form", "prefix"))):
        raise typer.BadParameter("--interactive takes settings, but no files, forms or other models")


def _reordered(given: Mapping[str, Any]) -> bool:
    """Whether the n best are put into another order, so that the first of them is the answer."""
    return bool(given["mbr"] or given["rescore_by"])


def _form(given: Mapping[str, Any]) -> Any:
    """How to write: as asked for, or else as fits the input and the number of translations."""
    several = given["n_best"] > 1 and not _reordered(given)
    return given["form"] or ("jsonl" if given["input_form"] == "jsonl" else "nbest" if several else "text")
