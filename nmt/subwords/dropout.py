"""BPE-dropout: subwords cut anew by leaving out merges at random (Provilkov et al. 2020).

Sentencepiece can draw too, but from a generator that no seed repeats in another process. The merges are those of its
model: two neighbours may be joined where a piece spells both, earlier pieces first, the leftmost of equals.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from random import Random

from nmt.subwords.escape import escape
from nmt.subwords.vocabulary import Vocabulary

_SPACE = "\u2581"
_BYTE = re.compile("<0x[0-9A-F]{2}>")
_MOST_WORDS = 1 << 18  # whose plain pieces are remembered


class MergeDropout:
    """Cuts text into the pieces of a BPE model, leaving out each possible merge with a probability at each step."""

    def __init__(self, vocabulary: Vocabulary, dropout: float) -> None:
        self._dropout = dropout
        text = range(vocabulary.eos + 1, len(vocabulary) - len(vocabulary.reserved))
        pieces = {vocabulary.piece(i): i for i in text}
        self._bytes = [i for piece, i in pieces.items() if _BYTE.fullmatch(piece)]
        self._ids = {piece: i for piece, i in pieces.items() if not _BYTE.fullmatch(piece)}
        self._unknown = vocabulary.unk
        inner = any(_SPACE in piece[1:] for piece in self._ids)
        self._word = re.compile(".+" if inner else f"{_SPACE}?[^{_SPACE}]*", re.DOTALL)
        self._plain: dict[str, tuple[list[int], int]] = {}

    def encode(self, text: str, seed: int) -> list[int]:
        """The ids of `text`, a function of both; without dropout, those that Vocabulary.encode gives."""
        if not text:
            return []
        draw = Random(seed).random
        escaped = _SPACE + escape(text).replace(" ", _SPACE)
        return [i for word in self._word.findall(escaped) if word for i in self._cut(word, draw)]

    def _cut(self, word: str, draw: Callable[[], float]) -> list[int]:
        """A word's ids. Most keep all the merges of the plain way, whose number tells how likely that is."""
        ids, merges = self._whole(word)
        share = 1 - (1 - self._dropout) ** merges
        if self._dropout == 0 or draw() >= share:
            return ids
        first = int(math.log1p(-draw() * share) / math.log1p(-self._dropout))  # the merge that is left out first
        return self._spelled(self._merged(word, min(first, merges - 1), draw)[0])

    def _whole(self, word: str) -> tuple[list[int], int]:
        """The ids of a word without dropout, and the number of its merges."""
        if (known := self._plain.get(word)) is not None:
            return known
        symbols, merges = self._merged(word)
        found = self._spelled(symbols), merges
        if len(self._plain) < _MOST_WORDS:
            self._plain[word] = found
        return found

    def _merged(
        self, word: str, first: int | None = None, draw: Callable[[], float] = Random().random
    ) -> tuple[list[str], int]:
        """A word's symbols and number of merges: all; or the best `first` ones, not the next, and then by chance."""
        symbols, step, get = list(word), 0, self._ids.get
        while True:
            pairs = (symbols[i] + symbols[i + 1] for i in range(len(symbols) - 1))
            ranked = sorted((rank, i) for i, pair in enumerate(pairs) if (rank := get(pair)) is not None)
            if first is not None and step >= first:
                ranked = ranked[1:] if step == first else ranked
                ranked = [pair for pair in ranked if draw() >= self._dropout]
            if not ranked:
                return symbols, step
            place = ranked[0][1]
            symbols[place : place + 2] = [symbols[place] + symbols[place + 1]]
            step += 1

    def _spelled(self, symbols: list[str]) -> list[int]:
        """Their ids: a character without a piece is spelled in bytes, or a row of them is one unknown."""
        return list(self._spell(symbols))

    def _spell(self, symbols: list[str]) -> Iterator[int]:
        known = True
        for symbol in symbols:
            if (i := self._ids.get(symbol)) is not None:
                yield i
            elif self._bytes:
                yield from (self._bytes[byte] for byte in symbol.encode())
            elif known:
                yield self._unknown
            known = self._bytes != [] or symbol in self._ids
