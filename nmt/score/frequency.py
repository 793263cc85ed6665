"""How well words are translated that training has seen often, seldom or never: F-scores of words by their frequency."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from nmt.corpus.lines import is_blank
from nmt.score.breakdown import bucket, range_names
from nmt.score.texts import Texts

BOUNDS = (0, 1, 2, 3, 4, 5, 10, 100, 1000)
Words = Callable[[str], list[str]]


@dataclass(frozen=True)
class WordScore:
    """Counts of words over all lines: how many a system wrote, how many the references hold, how many are both."""

    written: int
    wanted: int
    both: int

    @property
    def precision(self) -> float:
        """Percent of the written words that the reference of their line holds; 0 when none is written."""
        return 100 * self.both / self.written if self.written else 0.0

    @property
    def recall(self) -> float:
        """Percent of the references' words that are written in their line; 0 when there are none."""
        return 100 * self.both / self.wanted if self.wanted else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        total = self.written + self.wanted
        return 200 * self.both / total if total else 0.0


@dataclass(frozen=True)
class FrequencyGroup:
    """Words that stand as often in the training text as `name` says; a WordScore for each system."""

    name: str
    words: tuple[WordScore, ...]


def by_frequency(texts: Texts, training: Iterable[str], words: Words) -> tuple[FrequencyGroup, ...]:
    """F-scores of `words` by how often they stand in the `training` lines, the target side of the training text.

    Of several references the first that is not blank counts. Groups without any word are left out.
    """
    references = [next((r for r in texts.referred(i) if not is_blank(r)), "") for i in range(len(texts))]
    wanted = [Counter(words(line)) for line in references]
    written = [[Counter(words(line)) for line in lines] for lines in texts.systems]
    known = {word for counts in (*wanted, *(c for system in written for c in system)) for word in counts}
    seen = Counter(word for line in training for word in words(line) if word in known)
    tables = [_tally(system, wanted, seen) for system in written]
    groups = []
    for i, name in enumerate(range_names(BOUNDS)):
        scores = tuple(WordScore(*table[i]) for table in tables)
        if any(score.written or score.wanted for score in scores):
            groups.append(FrequencyGroup(name, scores))
    return tuple(groups)


def _tally(written: Sequence[Counter[str]], wanted: Sequence[Counter[str]], seen: Mapping[str, int]) -> list[list[int]]:
    """For each range of frequency: words written, wanted, and both."""
    table = [[0, 0, 0] for _ in BOUNDS]
    for hypothesis, reference in zip(written, wanted, strict=True):
        for word in hypothesis.keys() | reference.keys():
            row = table[bucket(seen.get(word, 0), BOUNDS)]
            row[0] += hypothesis[word]
            row[1] += reference[word]
            row[2] += min(hypothesis[word], reference[word])
    return table
