"""Options of nmt translate that control what it may write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

import typer

if TYPE_CHECKING:
    from nmt.search.control.request import Request
    from nmt.search.translation import Translation

LENGTH, LOOPS, CONTENT, SAMPLING = (
    "Length of translations",
    "Against repetition",
    "What translations must hold",
    "Sampling",
)
KINDS = ("url", "email", "placeholder", "number")

MinLength = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--min-length",
        min=0,
        metavar="N",
        show_default=False,
        rich_help_panel=LENGTH,
        help="A translation has at least this many tokens, end mark not counted.",
    ),
]
MaxLength = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--max-length",
        min=1,
        metavar="N",
        show_default=False,
        rich_help_panel=LENGTH,
        help="A translation has at most this many tokens, end mark not counted.",
    ),
]
MinRatio = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(
        "--min-length-ratio",
        min=0,
        metavar="R",
        show_default=False,
        rich_help_panel=LENGTH,
        help="At least this many tokens for each source token.",
    ),
]
MaxRatio = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(
        "--max-length-ratio",
        metavar="R",
        show_default=False,
        rich_help_panel=LENGTH,
        help="At most this many tokens for each source token, but one in any case.",
    ),
]
NoRepeat = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--no-repeat-ngram",
        "--no-repeat-ngram-size",
        min=0,
        metavar="N",
        show_default=False,
        rich_help_panel=LOOPS,
        help="No sequence of N tokens occurs twice in a translation; 0 allows it.",
    ),
]
RepetitionPenalty = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(
        "--repetition-penalty",
        metavar="X",
        show_default=False,
        rich_help_panel=LOOPS,
        help="Multiply the log-probability of tokens written already; above 1 avoids them, 1 is neutral.",
    ),
]
Prefix = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--prefix",
        metavar="FILE",
        show_default=False,
        rich_help_panel=CONTENT,
        help="How each translation begins, line for line; an empty line leaves it free.",
    ),
]
Require = Annotated[
    list[str] | None,
    typer.Option(
        "--require",
        metavar="PHRASE",
        show_default=False,
        rich_help_panel=CONTENT,
        help="Must stand in every translation as whole words; may repeat.",
    ),
]
Forbid = Annotated[
    list[str] | None,
    typer.Option(
        "--forbid",
        metavar="PHRASE",
        show_default=False,
        rich_help_panel=CONTENT,
        help="Must not stand in any translation as whole words; may repeat.",
    ),
]
GlossaryFile = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--glossary",
        metavar="FILE",
        show_default=False,
        rich_help_panel=CONTENT,
        help="Lines SOURCE TAB TARGET: where SOURCE stands in a line, TARGET must stand in its translation.",
    ),
]
Protect = Annotated[
    list[str] | None,
    typer.Option(
        "--protect",
        metavar="KIND",
        show_default=False,
        rich_help_panel=CONTENT,
        help=f"Must come through unchanged, exactly as often as in the source: {', '.join(KINDS)} or all; may repeat.",
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        metavar="REGEX",
        show_default=False,
        rich_help_panel=CONTENT,
        help="Whatever this regular expression finds must come through like --protect's; may repeat.",
    ),
]
Sample = Annotated[
    bool,
    typer.Option(
        "--sample",
        rich_help_panel=SAMPLING,
        help="Draw translations at random by their probability; --n-best K draws K.",
    ),
]
Temperature = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(
        "--temperature",
        metavar="T",
        show_default=False,
        rich_help_panel=SAMPLING,
        help="Below 1 prefers the probable, above 1 the improbable.",
    ),
]
TopK = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--top-k",
        min=0,
        metavar="K",
        show_default=False,
        rich_help_panel=SAMPLING,
        help="Draw from the K most probable tokens; 0 is all.",
    ),
]
TopP = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(
        "--top-p",
        metavar="P",
        show_default=False,
        rich_help_panel=SAMPLING,
        help="Draw from the fewest tokens that together have probability P.",
    ),
]
Seed = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--seed",
        metavar="N",
        show_default=False,
        rich_help_panel=SAMPLING,
        help="Chooses the random numbers; each source text has its own. Default: 1.",
    ),
]
Mbr = Annotated[
    Optional[Literal["chrf"]],  # noqa: UP045
    typer.Option(
        "--mbr",
        show_default=False,
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


def reorder(mbr: str | None) -> Callable[[Translation], Translation]:
    """What puts the alternatives of a translation into the order asked for."""
    if mbr is None:
        return lambda translation: translation
    from nmt.score.mbr import Consensus

    return Consensus()


def asked_of_all(
    require: list[str] | None,
    forbid: list[str] | None,
    glossary: Path | None,
    protect: list[str] | None,
    keep: list[str] | None,
) -> Request:
    """What the options ask of the translation of every line."""
    from nmt.search.control.glossary import Glossary
    from nmt.search.control.protect import Protector
    from nmt.search.control.request import Request

    kinds = [kind for names in protect or [] for kind in names.split(",")]
    return Request(
        "",
        require=tuple(require or ()),
        forbid=tuple(forbid or ()),
        glossary=Glossary.read(glossary) if glossary else None,
        protector=Protector(KINDS if "all" in kinds else kinds, keep or []) if kinds or keep else None,
    )
