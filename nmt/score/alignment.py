"""Word alignments against gold ones: the alignment error rate (Och and Ney 2003)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.corpus.lines import read_lines
from nmt.errors import DataError
from nmt.wording import counted

Link = tuple[int, int]
"""Source word and target word, from 0."""
_LINK = re.compile(r"(\d{1,9})([-?p])(\d{1,9})")


@dataclass(frozen=True)
class Gold:
    """The right links of a pair of sentences: those that all who annotated it agree on, and those that may be."""

    sure: frozenset[Link]
    possible: frozenset[Link]
    """The sure ones too."""


@dataclass(frozen=True)
class AlignmentScore:
    """How links agree with gold ones, over a whole test set, all from 0 to 1."""

    error: float
    """1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|), for links A, sure ones S and possible ones P."""
    precision: float
    """How many of the links are possible; 1 where there are no links."""
    recall: float
    """How many of the sure links were found; 1 where there are none."""
    links: int
    sure: int
    possible: int


def alignment_score(found: Sequence[Iterable[Link]], gold: Sequence[Gold]) -> AlignmentScore:
    """Compare the links of each pair with its gold ones, all counts added up over the pairs.

    Raises DataError when the numbers of pairs differ, or there is no link on either side.
    """
    if len(found) != len(gold):
        have = counted(len(found), "pair has", "pairs have")
        raise DataError(f"{have} links, {counted(len(gold), 'has', 'have')} gold links; they must be equal")
    links = sure = possible = hit_sure = hit_possible = 0
    for pair, right in zip(map(frozenset, found), gold, strict=True):
        links, sure, possible = links + len(pair), sure + len(right.sure), possible + len(right.possible)
        hit_sure, hit_possible = hit_sure + len(pair & right.sure), hit_possible + len(pair & right.possible)
    if not links + sure:
        raise DataError("there are no links and no sure gold links: nothing to measure", "check the file of gold links")
    return AlignmentScore(
        error=1 - (hit_sure + hit_possible) / (links + sure),
        precision=hit_possible / links if links else 1.0,
        recall=hit_sure / sure if sure else 1.0,
        links=links,
        sure=sure,
        possible=possible,
    )


def read_gold(path: Path | str, sizes: Sequence[Link]) -> list[Gold]:
    """Gold links, a line a pair: ``0-0 1?2 3p4``, sure with a hyphen, possible with ``?`` or ``p``, words from 0.

    `sizes` are the words of each pair's source and target. Raises DataError for a line that is none, a link beyond
    its sentence, and another number of lines.
    """
    lines = list(read_lines(path))
    if len(lines) != len(sizes):
        pairs = counted(len(sizes), "pair")
        raise DataError(
            f"{path} has {counted(len(lines), 'line')} for {pairs} of sentences; they must be equal",
            "give one line of links for each pair, blank where it has none",
        )
    return [_gold(line, size, f"{path}:{n}") for n, (line, size) in enumerate(zip(lines, sizes, strict=True), 1)]


def _gold(line: str, size: Link, place: str) -> Gold:
    sure, possible = set(), set()
    for text in line.split():
        match = _LINK.fullmatch(text)
        if match is None:
            raise DataError(f"{place}: {text[:30]!r} is no link; one is like 3-5, or 3?5 where it is only possible")
        link = int(match[1]), int(match[3])
        for name, word, count in zip(("source", "target"), link, size, strict=True):
            if word >= count:
                raise DataError(
                    f"{place}: {text!r}: the {name} has {counted(count, 'word')}, counted from 0",
                    "give the text that was annotated, its words parted by spaces, and links counted from 0",
                )
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return Gold(frozenset(sure), frozenset(possible))
