"""Options of nmt translate that choose among the translations which the model offers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from .options import option, option_of

if TYPE_CHECKING:
    from nmt.search.control.rerank import Reorder
    from nmt.search.translate import Translator

choosing = partial(option, panel="Choice among translations")

Groups = Annotated[
    int | None,
    choosing(
        "--beam-groups",
        "--diverse-beam-groups",
        min=1,
        metavar="G",
        help="Divide the beam into G groups that avoid each other's words: diverse beam search.",
    ),
]
Diversity = Annotated[
    float | None,
    choosing(
        "--diversity",
        "--diverse-beam-strength",
        min=0,
        metavar="X",
        help="What a token loses for each hypothesis of an earlier group that took it. Default: 0.5.",
    ),
]
Patience = Annotated[
    float | None,
    choosing(
        "--patience",
        min=1,
        metavar="X",
        help="The search for a line ends once X times the beam's hypotheses have ended, if not before; 1 is neutral, "
        "and a beam of 1 is greedy.",
    ),
]
Coverage = Annotated[
    float | None,
    choosing(
        "--coverage-penalty",
        min=0,
        metavar="B",
        help="Of what the beam finds, prefer by this weight what looks at every source token; 0 is neutral.",
    ),
]
Unique = Annotated[
    bool,
    choosing("--unique-text", metavar=None, help="No two of the n best have the same text."),
]
LmFile = Annotated[
    Path | None,
    choosing(
        "--lm",
        metavar="FILE",
        help="An ARPA file of target pieces, as nmt lm writes: its log-probabilities are added at every step.",
    ),
]
LmWeight = Annotated[
    float | None,
    choosing("--lm-weight", min=0, metavar="W", help="Weight of --lm's log-probabilities. Default: 0.2."),
]
ShortlistFile = Annotated[
    Path | None,
    choosing(
        "--shortlist",
        metavar="FILE",
        help="Write only pieces that translate the source's, as nmt lexicon lists them, and the most frequent ones.",
    ),
]
RescoreBy = Annotated[
    list[Path] | None,
    choosing(
        "--rescore-by",
        metavar="MODEL",
        help="Order the n best by their scores plus those of this model, weighed; may repeat.",
    ),
]
RescoreWeight = Annotated[
    list[float] | None,
    choosing(
        "--rescore-weight",
        "--weight",
        metavar="W",
        help="Weight of each --rescore-by, in their order. Default: 1.",
    ),
]
Mbr = Annotated[
    Literal["chrf"] | None,
    choosing(
        "--mbr",
        metavar=None,
        help="Of the n best or the samples, the first is the one most like all others: minimum Bayes risk.",
    ),
]


def check_choice(given: Mapping[str, Any]) -> None:
    """Raises BadParameter for what would change nothing, or lacks a half."""
    rescore_by, weights, sample = given["rescore_by"] or (), given["rescore_weight"], given["sample"]
    for name in ("mbr", "rescore_by"):
        if given[name] and given["n_best"] == 1:
            raise typer.BadParameter(f"{option_of(name)} chooses among the translations that --n-best K asks for")
    if weights and len(weights) != len(rescore_by):
        raise typer.BadParameter(f"{len(weights)} --rescore-weight for {len(rescore_by)} --rescore-by")
    if given["lm_weight"] is not None and given["lm"] is None:
        raise typer.BadParameter("--lm-weight would change nothing without --lm")
    groups = given["beam_groups"] or 1
    if groups > 1 and sample:
        raise typer.BadParameter("--beam-groups would change nothing with --sample")
    if given["diversity"] is not None and groups == 1 and given["input_form"] == "text":
        raise typer.BadParameter("--diversity would change nothing without --beam-groups")


def reorder(
    mbr: str | None,
    rescore_by: list[Path] | None,
    weights: list[float] | None,
    translator: Translator,
    length_penalty: str | None,
) -> Reorder:
    """What puts the alternatives of a translation into the order asked for."""
    from nmt.search.control.rerank import Rescoring, in_turn

    if strange := next((weight for weight in weights or [] if not abs(weight) <= 1000), None):
        raise typer.BadParameter(f"--rescore-weight = {strange:g} is not a number from -1000 to 1000")
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
