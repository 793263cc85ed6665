"""The tag before a source sentence that tells a model for several languages or domains what is wanted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from nmt.errors import NmtError
from nmt.schema import nearest
from nmt.search.control.request import Request
from nmt.subwords.vocabulary import Vocabulary

R = TypeVar("R")


@dataclass(frozen=True)
class Tags:
    """The tags that a model's source vocabulary has, and whether no line can do without."""

    vocabulary: Vocabulary
    needed: bool = False
    default: str = ""
    """The tag of a sentence that comes with none."""

    def lead(self, tag: str = "", place: str = "") -> list[int]:
        """The ids to put before a sentence: that of `tag`, or none. Raises NmtError where it is unknown or missing."""
        tag = tag or self.default
        known = self.vocabulary.tags if tag or self.needed else {}
        if tag in known:
            return [known[tag]]
        if not tag and not self.needed:
            return []
        if not known:
            raise NmtError(f"{place}{tag}: this model knows no tags; it was trained without", "leave the tag out")
        names = ", ".join(known)
        if not tag:
            raise NmtError(
                f"{place}this model was trained with a tag before every sentence; it knows {names}",
                f"say which: --tag '{next(iter(known))}'{_languages(list(known))}",
            )
        guess = nearest(tag, known)
        raise NmtError(
            f"{place}{tag} is not a tag of this model; it knows {names}",
            f"did you mean {guess}?" if guess else f"take one of {names}",
        )


def tagged(request: R, tag: str) -> R | Request:
    """`request` with `tag`, if it has none of its own."""
    return replace(request, tag=tag) if isinstance(request, Request) and not request.tag else request


def _languages(tags: list[str]) -> str:
    """The shorter way to ask for the first language."""
    first = next((tag[2:-1] for tag in tags if tag.startswith("<2")), "")
    return f", or --to {first}" if first else ""
