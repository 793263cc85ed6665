"""Translation probabilities of pieces, learned from sentence pairs: IBM model 1 (Brown et al. 1993).

L links: a source and a target place of one pair each · P distinct pairs of pieces · T target places of all pairs
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.corpus.clean import Cleaner
from nmt.corpus.lines import is_blank, keep_apart, open_lines, read_lines
from nmt.errors import DataError
from nmt.events import Caution, Event, Notice
from nmt.subwords.vocabulary import Vocabulary
from nmt.wording import bad_bytes, counted

Side = tuple[Vocabulary, Cleaner]

ROUNDS = 5
_NOTHING = 0  # the padding id stands for the empty source word, which anything may come from
_LEAST = 1e-4


def translations(
    pairs: Iterable[tuple[Sequence[int], Sequence[int]]], rounds: int = ROUNDS
) -> Iterator[tuple[int, int, float]]:
    """Source id, target id and probability of the target given the source, the likeliest of each source first.

    Expectation maximization over all links of the given pairs at once: memory grows with the products of their
    lengths. What comes from no source word is left out, and so is what is less probable than one in ten thousand.
    """
    source_L, target_L, place_L = _links(pairs)
    size = int(max(target_L.max(initial=0), source_L.max(initial=0))) + 1
    key_P, pair_L = np.unique(source_L * size + target_L, return_inverse=True)
    source_P, target_P = key_P // size, key_P % size
    value_P = np.ones(len(key_P))
    for _ in range(rounds):
        likely_L = value_P[pair_L]
        share_L = likely_L / np.bincount(place_L, likely_L)[place_L]
        count_P = np.bincount(pair_L, share_L, minlength=len(key_P))
        value_P = count_P / np.bincount(source_P, count_P)[source_P]
    for i in np.lexsort((target_P, -value_P, source_P)):
        if source_P[i] != _NOTHING and value_P[i] >= _LEAST:
            yield int(source_P[i]), int(target_P[i]), float(value_P[i])


def _links(
    pairs: Iterable[tuple[Sequence[int], Sequence[int]]],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Of every link its source id, its target id, and the number of its target place."""
    parts: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = []
    first = 0
    for source, target in pairs:
        one, other = np.array([_NOTHING, *source], np.int64), np.array(target, np.int64)
        places = np.arange(first, first + len(other))
        parts.append((np.tile(one, len(other)), np.repeat(other, len(one)), np.repeat(places, len(one))))
        first += len(other)
    empty = np.zeros(0, np.int64)
    columns = zip(*parts, strict=True) if parts else ((empty,), (empty,), (empty,))
    source_L, target_L, place_L = (np.concatenate(column) for column in columns)
    return source_L, target_L, place_L


def learn_file(
    source_side: Side,
    target_side: Side,
    source: Path | str,
    target: Path | str,
    output: Path | str,
    *,
    best: int,
    on_bad_bytes: str = "error",
) -> Iterator[Event]:
    """Write lines of target piece, source piece and probability, learned from two files of parallel raw text.

    Pairs with a blank side don't count. Raises DataError when the counts of lines differ, OutputError.
    """
    for path in (source, target):
        keep_apart(path, output)
    tally: Counter[str] = Counter()
    pairs = []
    sides = zip_longest(*(read_lines(path, on_bad_bytes, tally) for path in (source, target)))
    for number, (one, other) in enumerate(sides, 1):
        if one is None or other is None:
            shorter = source if one is None else target
            raise DataError(
                f"{shorter}: has only {counted(number - 1, 'line')}; pairs belong together by their number", ""
            )
        if not is_blank(one) and not is_blank(other):
            texts = zip((source_side, target_side), (one, other), strict=True)
            pairs.append([vocabulary.encode(cleaner.clean(text)) for (vocabulary, cleaner), text in texts])
    yield Notice(counted(len(pairs), "pair"))
    seen: Counter[int] = Counter()
    with open_lines(output) as out:
        for piece, translation, probability in translations((one, other) for one, other in pairs):
            seen[piece] += 1
            words = target_side[0].piece(translation), source_side[0].piece(piece)
            if seen[piece] <= best and not any(" " in word or "\t" in word for word in words):
                out.write(f"{words[0]} {words[1]} {probability:.6f}")
    if tally["bad bytes"]:
        yield Caution(bad_bytes(tally["bad bytes"]))
