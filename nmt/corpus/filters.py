"""Which pairs are left out, and why: length, ratio, identical sides, held-out text, duplicates."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from nmt.corpus.lines import is_blank

EMPTY = "empty"
HELD_OUT = "held out"
DUPLICATE = "duplicate"


@dataclass(frozen=True)
class Filters:
    """The rules for one pair of cleaned lines; `PreprocessConfig` says what each means."""

    min_words: int = 1
    max_words: int = 250
    max_characters: int = 2000
    max_ratio: float = 9.0
    drop_identical: bool = False
    drop_duplicates: bool = True
    drop_held_out: bool = True

    def reason(self, source: str, target: str) -> str:
        """Why the pair is left out, looking at nothing but the pair; an empty string when it is kept."""
        if is_blank(source) or is_blank(target):
            return EMPTY
        words = len(source.split()), len(target.split())
        characters = len(source), len(target)
        if min(words) < self.min_words:
            return "too few words"
        if max(words) > self.max_words:
            return "too many words"
        if max(characters) > self.max_characters:
            return "too many characters"
        if max(characters) > 20 and max(characters) > self.max_ratio * min(characters):
            return "ratio"
        if self.drop_identical and source == target:
            return "identical"
        return ""


def digest(text: str) -> int:
    """64 bits that stand for `text`. Among 100 million texts, two unlike ones agree with probability 0.0003."""
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "little")


class Seen:
    """A growing set of 64-bit digests in 8 bytes each, twice that while growing.

    Sorted arrays, each at least twice as long as the next: adding merges the short ones, asking looks into each.
    """

    def __init__(self) -> None:
        self._levels: list[npt.NDArray[np.uint64]] = []

    def add(self, digests: list[int]) -> list[bool]:
        """For each digest in turn, whether it had been there before, in the set or earlier in the list."""
        if not digests:
            return []
        values = np.array(digests, dtype=np.uint64)
        new, first = np.unique(values, return_index=True)
        fresh = np.ones(len(new), dtype=bool)
        for level in self._levels:
            place = np.minimum(np.searchsorted(level, new), len(level) - 1)
            fresh &= level[place] != new
        seen = np.ones(len(values), dtype=bool)
        seen[first[fresh]] = False
        self._insert(new[fresh])
        return [bool(one) for one in seen]

    def _insert(self, level: npt.NDArray[np.uint64]) -> None:
        if not len(level):
            return
        while self._levels and len(self._levels[-1]) < 2 * len(level):
            level = np.concatenate((self._levels.pop(), level))
            level.sort(kind="stable")  # two sorted runs: one merge
        self._levels.append(level)
