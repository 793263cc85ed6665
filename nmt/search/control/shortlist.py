"""Vocabulary shortlists: only likely translations of a source's words may be chosen (Jean et al. 2015).

R rows · V vocabulary · T tokens so far
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from nmt.corpus.lines import read_lines
from nmt.errors import DataError
from nmt.subwords.vocabulary import EOS

BEST, FREQUENT = 100, 100


class Lexicon:
    """For each source piece, the target pieces it is translated by, the likeliest first; and pieces always allowed."""

    def __init__(self, entries: Iterable[tuple[int, int, float]], always: Iterable[int], best: int = BEST) -> None:
        """`entries` are source, target and probability of the target given the source."""
        by_source: dict[int, list[tuple[float, int]]] = defaultdict(list)
        for source, target, probability in entries:
            by_source[source].append((-probability, target))
        self.targets = {source: [target for _, target in sorted(found)[:best]] for source, found in by_source.items()}
        self.always = frozenset(always) | {EOS}

    @classmethod
    def read(
        cls, path: Path | str, source: Sequence[str], target: Sequence[str], best: int = BEST, frequent: int = FREQUENT
    ) -> Lexicon:
        """From lines of a target piece, a source piece and a probability, as Marian and fast_align's tools write them.

        The `frequent` pieces with the most probability over all sources are always allowed, and so are pieces that
        stand for bytes. Raises DataError naming the line that is none of the form.
        """
        sources, targets = ({piece: i for i, piece in enumerate(side)} for side in (source, target))
        entries = [
            (sources[one], targets[other], probability)
            for other, one, probability in _entries(path)
            if one in sources and other in targets
        ]
        if not entries:
            raise DataError(f"{path}: holds no pair of pieces of this model", "make it of what nmt encode writes")
        mass: dict[int, float] = defaultdict(float)
        for _, token, probability in entries:
            mass[token] += probability
        often = sorted(mass, key=lambda token: (-mass[token], token))[:frequent]
        spelled = [i for piece, i in targets.items() if piece.startswith("<0x") and len(piece) == 6]
        return cls(entries, [*often, *spelled], best)

    def allowed(self, source: Iterable[int]) -> frozenset[int]:
        """The target pieces that may stand in a translation of `source`."""
        return self.always.union(*(self.targets.get(piece, ()) for piece in source))


def _entries(path: Path | str) -> Iterator[tuple[str, str, float]]:
    for number, line in enumerate(read_lines(path), 1):
        parts = line.split(" ") if "\t" not in line else line.split("\t")
        try:
            target, source, probability = parts
            yield target, source, float(probability)
        except ValueError:
            raise DataError(
                f"{path}:{number}: is not TARGET SOURCE PROBABILITY", "write two pieces and a number on each line"
            ) from None


class Shortlist:
    """None but `allowed[sentence]` may be chosen; None allows everything."""

    def __init__(self, allowed: Sequence[Iterable[int] | None], device: torch.device) -> None:
        self.allowed = [
            None if tokens is None else torch.tensor(sorted(tokens), dtype=torch.long, device=device)
            for tokens in allowed
        ]

    def __call__(self, log_probs_RV: Tensor, ids_RT: Tensor, sentences: Sequence[int]) -> Tensor:
        """Rules out what is not on the sentence's list; what is on it keeps its share of the probability mass."""
        for row, sentence in enumerate(sentences):
            tokens = self.allowed[sentence]
            if tokens is not None:
                kept = log_probs_RV[row, tokens]
                log_probs_RV[row] = -torch.inf
                log_probs_RV[row, tokens] = kept
        return log_probs_RV
