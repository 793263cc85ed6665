"""Options of nmt translate that control what it may write."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import option, option_of

if TYPE_CHECKING:
    from nmt.search.control.request import Request
    from nmt.search.resume import Kept
    from nmt.search.translate import Translator

length = partial(option, panel="Length of translations")
looping = partial(option, panel="Against repetition")
holding = partial(option, panel="What translations must hold")
sampling = partial(option, panel="Sampling")
KINDS = ("url", "email", "placeholder", "number")

MinLength = Annotated[
    int | None,
    length("--min-length", min=0, help="A translation has at least N tokens, end mark not counted."),
]
MaxLength = Annotated[
    int | None,
    length("--max-length", min=1, help="A translation has at most N tokens, end mark not counted."),
]
MinRatio = Annotated[
    float | None,
    length("--min-length-ratio", min=0, metavar="R", help="At least R tokens for each source token."),
]
MaxRatio = Annotated[
    float | None,
    length("--max-length-ratio", metavar="R", help="At most R tokens for each source token, but one anyway."),
]
NoRepeat = Annotated[
    int | None,
    looping(
        "--no-repeat-ngram",
        "--no-repeat-ngram-size",
        min=0,
        help="No sequence of N tokens occurs twice in a translation; 0 allows it.",
    ),
]
RepetitionPenalty = Annotated[
    float | None,
    looping(
        "--repetition-penalty",
        metavar="X",
        help="Multiply the log-probability of tokens written already; above 1 avoids them, 1 is neutral.",
    ),
]
Prefix = Annotated[
    Path | None,
    holding(
        "--prefix",
        metavar="FILE",
        help="How each translation begins, line for line; an empty line leaves it free.",
    ),
]
Require = Annotated[
    list[str] | None,
    holding(
        "--require",
        metavar="PHRASE",
        help="Must stand in every translation as whole words; may repeat.",
    ),
]
Forbid = Annotated[
    list[str] | None,
    holding(
        "--forbid",
        metavar="PHRASE",
        help="Must not stand in any translation as whole words; may repeat.",
    ),
]
GlossaryFile = Annotated[
    Path | None,
    holding(
        "--glossary",
        metavar="FILE",
        help="Lines SOURCE TAB TARGET: where SOURCE stands in a line, TARGET must stand in its translation.",
    ),
]
Protect = Annotated[
    list[str] | None,
    holding(
        "--protect",
        metavar="KIND",
        help=f"Must come through unchanged, exactly as often as in the source: {', '.join(KINDS)} or all; may repeat.",
    ),
]
Keep = Annotated[
    list[str] | None,
    holding(
        "--keep",
        metavar="REGEX",
        help="Whatever this regular expression finds must come through like --protect's; may repeat.",
    ),
]
Markup = Annotated[
    bool,
    holding(
        "--markup",
        metavar=None,
        help="Lines hold tags and entities of XML or HTML: translate the text, put every tag around its words again.",
    ),
]
ReplaceUnk = Annotated[
    bool,
    holding(
        "--replace-unk",
        metavar=None,
        help="Where the model writes its unknown token, put the source word that it looks at.",
    ),
]
Sample = Annotated[
    bool,
    sampling(
        "--sample",
        metavar=None,
        help="Draw translations at random by their probability; --n-best K draws K.",
    ),
]
Temperature = Annotated[
    float | None,
    sampling("--temperature", metavar="T", help="Below 1 prefers the probable, above 1 the improbable."),
]
TopK = Annotated[
    int | None,
    sampling("--top-k", min=0, metavar="K", help="Draw from the K most probable tokens; 0 is all."),
]
TopP = Annotated[
    float | None,
    sampling("--top-p", metavar="P", help="Draw from the fewest tokens that together have probability P."),
]
Seed = Annotated[
    int | None,
    sampling("--seed", help="Chooses the random numbers; each source text has its own. Default: 1."),
]
Alignment = Annotated[
    bool,
    typer.Option(
        "--alignment",
        help="Tell which source word each word comes from: pairs i-j of white-space words from 0, by attention.",
    ),
]


SPEED = {"batch_tokens", "batch_lines", "buffer_lines", "device", "threads", "workers"}
UNASKED = {"n_best": 1, "input_form": "text", "on_bad_bytes": "error"}  # and what ControlConfig says is neutral
IDLE = SPEED | {"output", "lenpen", "interactive", "resume", "quiet"}  # what changes no line of the output


def check_sampling(given: Mapping[str, Any]) -> None:
    """Raises BadParameter for settings of sampling without it, unless lines of JSON may ask for it."""
    idle = [option_of(name) for name in ("temperature", "top_k", "top_p", "seed") if given[name] is not None]
    if idle and not given["sample"] and given["input_form"] == "text":
        raise typer.BadParameter(f"{', '.join(idle)} would change nothing without --sample")


def check_stdin(files: Mapping[str, object]) -> None:
    """Raises BadParameter where two of the options name stdin."""
    if len(twice := [name for name, path in files.items() if str(path) == "-"]) > 1:
        raise typer.BadParameter(f"only one of {' and '.join(twice)} can be stdin")


def kept(given: Mapping[str, Any]) -> Kept:
    """What an interrupted call of the same options has left."""
    from nmt import __version__
    from nmt.checkpoint.layout import read_description, resolve
    from nmt.corpus.lines import read_once
    from nmt.search.control.config import ControlConfig
    from nmt.search.resume import Kept, digest

    record: dict[str, Any] = {"nmt": __version__}
    for name, value in given.items():
        if name in {"models", "rescore_by"}:
            record[name] = [digest(resolve(Path(model))) for model in value or ()]
        elif name == "input_" or isinstance(value, Path):
            if read_once(value):
                raise typer.BadParameter(
                    f"--resume reads files again; {option_of(name.strip('_'))} {value} is no file but a stream"
                )
            record[name.strip("_")] = digest(Path(value))
        elif name not in IDLE:
            record[name] = value
    names = {name: option_of(name) for name in record if name != "nmt"}
    described = [read_description(resolve(Path(model))) for model in given["models"]]
    own = described[0].translate.model_dump()  # an ensemble has its first's
    own["max_source_tokens"] = min(one.translate.max_source_tokens or one.max_source_tokens for one in described)
    return Kept(Path(given["output"]), given["form"], record, names, UNASKED | own | ControlConfig.neutral())


def asked_of_all(
    translator: Translator,
    *,
    require: list[str] | None,
    forbid: list[str] | None,
    glossary: Path | None,
    protect: list[str] | None,
    keep: list[str] | None,
    lm: Path | None,
    shortlist: Path | None,
    markup: bool,
) -> Request:
    """What the options ask of the translation of every line."""
    from nmt.corpus.lines import is_blank
    from nmt.search.control.glossary import Glossary
    from nmt.search.control.protect import Protector
    from nmt.search.control.request import Request
    from nmt.search.control.shortlist import Lexicon
    from nmt.subwords.ngram import NgramModel

    for name, phrases in (("require", require), ("forbid", forbid)):
        if blank := [phrase for phrase in phrases or [] if is_blank(phrase)]:
            raise typer.BadParameter(f"--{name} {blank[0]!r} holds no word")
    kinds = [kind for names in protect or [] for kind in names.split(",")]
    source, target = (
        list(side.names(range(len(side)))) if lm or shortlist else []
        for side in (translator.source_vocabulary, translator.target_vocabulary)
    )
    return Request(
        "",
        require=tuple(phrase.strip() for phrase in require or ()),
        forbid=tuple(phrase.strip() for phrase in forbid or ()),
        glossary=Glossary.read(glossary) if glossary else None,
        protector=Protector(KINDS if "all" in kinds else kinds, keep or []) if kinds or keep else None,
        lm=NgramModel.read(lm, target) if lm else None,
        shortlist=Lexicon.read(shortlist, source, target) if shortlist else None,
        markup=markup,
    )
