"""Word alignments of training pairs, read from a file and checked, as links between the pieces of any way to cut them.

L links of a pair · 2 its source unit and its target unit
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Container, Iterable, Iterator
from itertools import zip_longest
from pathlib import Path

import numpy as np

from nmt.batches.shards import Shard
from nmt.corpus.lines import read_lines
from nmt.errors import DataError
from nmt.subwords.tags import tags_before
from nmt.subwords.vocabulary import Vocabulary

_LINK = re.compile(r"(\d{1,9})-(\d{1,9})")
_MARK = "\u2581"  # how a piece writes a space


class Links:
    """For each pair of sentences, by its number, the links_L2 between units of its source and target, from 0."""

    def __init__(self, units: array[int], counts: array[int]) -> None:
        self._units = np.frombuffer(units, np.int32).reshape(-1, 2) if units else np.zeros((0, 2), np.int32)
        self._ends = np.cumsum(np.frombuffer(counts, np.int32), dtype=np.int64) if counts else np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, row: int) -> np.ndarray:
        return self._units[self._ends[row - 1] if row else 0 : self._ends[row]]


def read_links(path: Path, sizes: Iterable[tuple[int, int]], units: str, text: Path) -> Links:
    """The file's links, a line a pair: ``0-0 1-2``, source before target, as Pharaoh and fast_align write them.

    `sizes` are the pairs' numbers of `units`, whose text is `text`. Raises DataError for a line that is none, a link
    beyond its sentence, and another number of lines.
    """
    found, counts = array("i"), array("i")
    for number, (line, size) in enumerate(zip_longest(read_lines(path), sizes), 1):
        if line is None or size is None:
            there, rest = ("fewer", "more") if line is None else ("more", "fewer")
            raise DataError(
                f"{path}: has {there} lines than {text} has pairs, or that has {rest}: they part at line {number}",
                f"align the lines of {text} and its other side as they are, one line of links for each pair",
            )
        links = line.split()
        for link in links:
            match = _LINK.fullmatch(link)
            place = f"{path}:{number}: {link[:30]!r}"
            if match is None:
                raise DataError(
                    f"{place} is no link; one is like 3-5, source and target {units} from 0",
                    "write the links of a pair on its line, such as 0-0 1-2; an empty line links nothing",
                )
            for name, unit, count in zip(("source", "target"), map(int, match.groups()), size, strict=True):
                if unit >= count:
                    raise DataError(f"{place}: the {name} has {count} {units}, counted from 0", "align the same text")
                found.append(unit)
        counts.append(len(links))
    return Links(found, counts)


def word_counts(source: Path, target: Path) -> Iterator[tuple[int, int]]:
    """How many words each pair of lines has: what stands between spaces."""
    for one, other in zip(read_lines(source), read_lines(target), strict=True):
        yield sum(map(bool, one.split(" "))), sum(map(bool, other.split(" ")))


def piece_counts(source: Shard, target: Shard, tags: Container[int]) -> Iterator[tuple[int, int]]:
    """How many pieces each pair of sentences has, a tag and context before the source not counted."""
    for row, lengths in enumerate(zip(source.lengths.tolist(), target.lengths.tolist(), strict=True)):
        yield lengths[0] - tags_before(source[row], tags), lengths[1]


class WordsOfPieces:
    """Which word of its sentence each piece belongs to, words being what stands between spaces."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        pieces = list(vocabulary.names(range(len(vocabulary))))
        self._opens = np.array([piece.startswith(_MARK) for piece in pieces])
        self._letters = np.array([bool(piece.strip(_MARK)) for piece in pieces])

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        """For each piece its word, from 0; a piece that is only space goes with the word after it."""
        lettered = np.flatnonzero(self._letters[ids])
        if not len(lettered):
            return np.zeros(len(ids), np.int64)
        words = (np.diff(np.cumsum(self._opens[ids])[lettered], prepend=-1) > 0).cumsum() - 1
        return words[np.searchsorted(lettered, np.arange(len(ids))).clip(max=len(lettered) - 1)]


def links_of_pieces(links_L2: np.ndarray, source_words: np.ndarray, target_words: np.ndarray) -> np.ndarray:
    """Links between words as links between all their pieces, given the word of each piece."""
    linked = np.zeros((int(source_words.max(initial=-1)) + 1, int(target_words.max(initial=-1)) + 1), dtype=bool)
    linked[links_L2[:, 0], links_L2[:, 1]] = True
    return np.argwhere(linked[source_words][:, target_words]) if linked.size else np.zeros((0, 2), np.int64)
