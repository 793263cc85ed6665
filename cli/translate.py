"""nmt translate: raw text in, raw text out."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import typer

from . import choice, control, show
from .options import Device, Input, Models, OnBadBytes, Output, Quiet, TagOption, Threads, To, asked_tag, count, option


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
RESUMABLE = 256  # lines read ahead where what an interrupted job has done shall be kept
ASKED = ("require", "forbid", "glossary", "protect", "keep", "lm", "shortlist", "markup")
SAMPLING = {"--temperature": "temperature", "--top-k": "top_k", "--top-p": "top_p", "--seed": "seed"}


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
    buffer_lines: Buffer = None,
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
    interactive: Interactive = False,
    resume: Resume = False,
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
    given = dict(locals())
    reordered = bool(mbr or rescore_by)
    if form == "text" and n_best > 1 and not reordered:
        raise typer.BadParameter("text has one line for each line; take --format nbest, jsonl or fairseq with --n-best")
    choice.check_choice(n_best, mbr, rescore_by, rescore_weight, lm is not None, lm_weight is not None)
    files = {"--input": input_, "--prefix": prefix, "--glossary": glossary, "--lm": lm, "--shortlist": shortlist}
    control.check_stdin(files)
    idle = [name for name, setting in SAMPLING.items() if given[setting] is not None]
    if idle and not sample and input_form == "text":
        raise typer.BadParameter(f"{', '.join(idle)} would change nothing without --sample")
    if (beam_groups or 1) > 1 and sample:
        raise typer.BadParameter("--beam-groups would change nothing with --sample")
    if diversity is not None and (beam_groups or 1) == 1 and input_form == "text":
        raise typer.BadParameter("--diversity would change nothing without --beam-groups")
    if length_penalty is not None and lenpen is not None:
        raise typer.BadParameter("--lenpen and --length-penalty are two names for one thing")
    if resume and "-" in {input_, output}:
        raise typer.BadParameter("--resume needs --input FILE and --output FILE")
    if interactive and (
        resume or input_ != "-" or output != "-" or input_form != "text" or form or prefix or reordered
    ):
        raise typer.BadParameter("--interactive takes settings, but no files, forms or other models")
    from nmt.checkpoint.ensemble import load_together
    from nmt.search.control.config import ControlConfig
    from nmt.search.files import translate_file

    form = form or ("jsonl" if input_form == "jsonl" else "nbest" if n_best > 1 and not reordered else "text")
    given |= {"length_penalty": length_penalty or lenpen, "form": form}
    kept = control.kept(given) if resume else None
    given["buffer_lines"] = buffer_lines or (RESUMABLE if resume else None)
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
            form=form,
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
        )
    )
