"""Options of nmt translate that control what it may write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from .options import option

if TYPE_CHECKING:
    from nmt.search.control.request import Request
    from nmt.search.control.rerank import Reorder
    from nmt.search.translate import Translator

LENGTH, LOOPS, CONTENT, SAMPLING, CHOICE = (
    "Length of translations",
    "Against repetition",
    "What translations must hold",
    "Sampling",
    "Choice among translations",
)
KINDS = ("url", "email", "placeholder", "number")

MinLength = Annotated[
    int | None,
    option("--min-length", min=0, panel=LENGTH, help="A translation has at least N tokens, end mark not counted."),
]
MaxLength = Annotated[
    int | None,
    option("--max-length", min=1, panel=LENGTH, help="A translation has at most N tokens, end mark not counted."),
]
MinRatio = Annotated[
    float | None,
    option("--min-length-ratio", min=0, metavar="R", panel=LENGTH, help="At least R tokens for each source token."),
]
MaxRatio = Annotated[
    float | None,
    option(
        "--max-length-ratio", metavar="R", panel=LENGTH, help="At most R tokens for each source token, but one anyway."
    ),
]
NoRepeat = Annotated[
    int | None,
    option(
        "--no-repeat-ngram",
        "--no-repeat-ngram-size",
        min=0,
        panel=LOOPS,
        help="No sequence of N tokens occurs twice in a translation; 0 allows it.",
    ),
]
RepetitionPenalty = Annotated[
    float | None,
    option(
        "--repetition-penalty",
        metavar="X",
        panel=LOOPS,
        help="Multiply the log-probability of tokens written already; above 1 avoids them, 1 is neutral.",
    ),
]
Prefix = Annotated[
    Path | None,
    option(
        "--prefix",
        metavar="FILE",
        panel=CONTENT,
        help="How each translation begins, line for line; an empty line leaves it free.",
    ),
]
Require = Annotated[
    list[str] | None,
    option(
        "--require",
        metavar="PHRASE",
        panel=CONTENT,
        help="Must stand in every translation as whole words; may repeat.",
    ),
]
Forbid = Annotated[
    list[str] | None,
    option(
        "--forbid",
        metavar="PHRASE",
        panel=CONTENT,
        help="Must not stand in any translation as whole words; may repeat.",
    ),
]
GlossaryFile = Annotated[
    Path | None,
    option(
        "--glossary",
        metavar="FILE",
        panel=CONTENT,
        help="Lines SOURCE TAB TARGET: where SOURCE stands in a line, TARGET must stand in its translation.",
    ),
]
Protect = Annotated[
    list[str] | None,
    option(
        "--protect",
        metavar="KIND",
        panel=CONTENT,
        help=f"Must come through unchanged, exactly as often as in the source: {', '.join(KINDS)} or all; may repeat.",
    ),
]
Keep = Annotated[
    list[str] | None,
    option(
        "--keep",
        metavar="REGEX",
        panel=CONTENT,
        help="Whatever this regular expression finds must come through like --protect's; may repeat.",
    ),
]
Markup = Annotated[
    bool,
    option(
        "--markup",
        metavar=None,
        panel=CONTENT,
        help="Lines hold tags and entities of XML or HTML: translate the text, put every tag around its words again.",
    ),
]
ReplaceUnk = Annotated[
    bool,
    option(
        "--replace-unk",
        metavar=None,
        panel=CONTENT,
        help="Where the model writes its unknown token, put the source word that it looks at.",
    ),
]
Sample = Annotated[
    bool,
    option(
        "--sample",
        metavar=None,
        panel=SAMPLING,
        help="Draw translations at random by their probability; --n-best K draws K.",
    ),
]
Temperature = Annotated[
    float | None,
    option("--temperature", metavar="T", panel=SAMPLING, help="Below 1 prefers the probable, above 1 the improbable."),
]
TopK = Annotated[
    int | None,
    option("--top-k", min=0, metavar="K", panel=SAMPLING, help="Draw from the K most probable tokens; 0 is all."),
]
TopP = Annotated[
    float | None,
    option(
        "--top-p", metavar="P", panel=SAMPLING, help="Draw from the fewest tokens that together have probability P."
    ),
]
Seed = Annotated[
    int | None,
    option("--seed", panel=SAMPLING, help="Chooses the random numbers; each source text has its own. Default: 1."),
]
Groups = Annotated[
    int | None,
    option(
        "--beam-groups",
        "--diverse-beam-groups",
        min=1,
        metavar="G",
        panel=CHOICE,
        help="Divide the beam into G groups that avoid each other's words: diverse beam search.",
    ),
]
Diversity = Annotated[
    float | None,
    option(
        "--diversity",
        "--diverse-beam-strength",
        min=0,
        metavar="X",
        panel=CHOICE,
        help="What a token loses for each hypothesis of an earlier group that took it. Default: 0.5.",
    ),
]
Coverage = Annotated[
    float | None,
    option(
        "--coverage-penalty",
        min=0,
        metavar="B",
        panel=CHOICE,
        help="Of what the beam finds, prefer by this weight what looks at every source token; 0 is neutral.",
    ),
]
Unique = Annotated[
    bool,
    option("--unique-text", metavar=None, panel=CHOICE, help="No two of the n best have the same text."),
]
LmFile = Annotated[
    Path | None,
    option(
        "--lm",
        metavar="FILE",
        panel=CHOICE,
        help="An ARPA file of target pieces, as nmt lm writes: its log-probabilities are added at every step.",
    ),
]
LmWeight = Annotated[
    float | None,
    option("--lm-weight", min=0, metavar="W", panel=CHOICE, help="Weight of --lm's log-probabilities. Default: 0.2."),
]
RescoreBy = Annotated[
    list[Path] | None,
    option(
        "--rescore-by",
        metavar="MODEL",
        panel=CHOICE,
        help="Order the n best by their scores plus those of this model, weighed; may repeat.",
    ),
]
RescoreWeight = Annotated[
    list[float] | None,
    option(
        "--rescore-weight",
        "--weight",
        metavar="W",
        panel=CHOICE,
        help="Weight of each --rescore-by, in their order. Default: 1.",
    ),
]
Mbr = Annotated[
    Literal["chrf"] | None,
    option(
        "--mbr",
        metavar=None,
        panel=CHOICE,
        help="Of the n best or the samples, the first is the one most like all others: minimum Bayes risk.",
    ),
]
Alignment = Annotated[
    bool,
    typer.Option(
        "--alignment",
        help="Tell which source word each word comes from: pairs i-j of white-space words from 0, by attention.",
    ),
]


def check_choice(
    n_best: int, mbr: str | None, rescore_by: list[Path] | None, weights: list[float] | None, lm: bool, lm_weight: bool
) -> None:
    """Raises BadParameter for what would change nothing, or lacks a half."""
    for name, asked in (("--mbr", mbr), ("--rescore-by", rescore_by)):
        if asked and n_best == 1:
            raise typer.BadParameter(f"{name} chooses among the translations that --n-best K asks for")
    if weights and len(weights) != len(rescore_by or ()):
        raise typer.BadParameter(f"{len(weights)} --rescore-weight for {len(rescore_by or ())} --rescore-by")
    if lm_weight and not lm:
        raise typer.BadParameter("--lm-weight would change nothing without --lm")


def reorder(
    mbr: str | None,
    rescore_by: list[Path] | None,
    weights: list[float] | None,
    translator: Translator,
    length_penalty: str | None,
) -> Reorder:
    """What puts the alternatives of a translation into the order asked for."""
    from nmt.search.control.rerank import Rescoring, in_turn

    steps: list[Reorder] = []
    if rescore_by:
        from nmt.checkpoint.load import load_translator

        loaded = [load_translator(model, str(translator.device)) for model in rescore_by]
        penalty = length_penalty or translator.settings.length_penalty
        steps.append(Rescoring(list(zip(loaded, weights or [1.0] * len(loaded), strict=True)), penalty))
    if mbr:
        from nmt.score.mbr import Consensus

        steps.append(Consensus())
    return in_turn(*steps)


def asked_of_all(
    translator: Translator,
    *,
    require: list[str] | None,
    forbid: list[str] | None,
    glossary: Path | None,
    protect: list[str] | None,
    keep: list[str] | None,
    lm: Path | None,
    markup: bool,
) -> Request:
    """What the options ask of the translation of every line."""
    from nmt.search.control.glossary import Glossary
    from nmt.search.control.protect import Protector
    from nmt.search.control.request import Request
    from nmt.subwords.ngram import NgramModel

    kinds = [kind for names in protect or [] for kind in names.split(",")]
    target = translator.target_vocabulary
    return Request(
        "",
        require=tuple(require or ()),
        forbid=tuple(forbid or ()),
        glossary=Glossary.read(glossary) if glossary else None,
        protector=Protector(KINDS if "all" in kinds else kinds, keep or []) if kinds or keep else None,
        lm=NgramModel.read(lm, [target.piece(i) for i in range(len(target))]) if lm else None,
        markup=markup,
    )
