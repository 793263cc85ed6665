"""How many tokens training's sentences have: of a run's shards, else by the corpus, else as in news text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np

from nmt.batches.buckets import BatchOrder
from nmt.batches.temperature import tempered
from nmt.errors import DataError
from nmt.recipe import Recipe
from nmt.stages.methods import side_limits
from nmt.stages.parent import parent_of
from nmt.stages.stage import RunFolder
from nmt.stages.training import corpora_of, open_shards
from nmt.train.data import Pairs
from nmt.train.fit import updates_of
from nmt.train.seeds import derive

MOST_PAIRS = 20_000
"""That are read of a corpus: the rest is taken to be like them."""
ENOUGH_PAIRS = 200_000
"""That batches are made of, the sample repeated: few pairs have few of any one length, and so more padding."""
PIECES_A_WORD, LETTERS_A_PIECE = 1.3, 4.6
PIECES_A_WIDE_LETTER = 0.6  # of Chinese and Japanese


@dataclass(frozen=True)
class Lengths:
    """Tokens of pairs, end marks not counted."""

    source: np.ndarray
    target: np.ndarray
    corpora: tuple[tuple[int, float], ...]
    """Consecutive ranges of the pairs, each with its weight."""
    pairs: float | None
    """How many an epoch has, of which these are all or a sample; None where nobody knows."""
    told_by: Literal["shards", "pieces", "corpus", "news"]


def lengths_of(recipe: Recipe, run: RunFolder | None) -> Lengths:
    """The best that can be known without preparing anything, with a `run` whose shards are of this recipe: theirs.

    Raises DataError for text that cannot be read.
    """
    if run:
        source, target = (shard.lengths for shard in open_shards(run, "train"))
        corpora = corpora_of(run, recipe.train.corpus_temperature)
        return Lengths(source, target, tuple(corpora), sum(count * weight for count, weight in corpora), "shards")
    if all(path.is_file() for corpus in recipe.data.train for path in corpus.files()):
        return _of_corpus(recipe)
    return _of_news()


def _of_corpus(recipe: Recipe) -> Lengths:
    """Of the first pairs of each corpus, more of those that come more often."""
    corpora = [(corpus.build().count() or 0, corpus.weight) for corpus in recipe.data.train]
    if recipe.train.corpus_temperature is not None:
        tags = [corpus.tag or number for number, corpus in enumerate(recipe.data.train)]
        corpora = tempered(corpora, recipe.train.corpus_temperature, tags)
    lines = sum(count * weight for count, weight in corpora)
    sides: tuple[list[int], list[int]] = [], []
    ranges, before = list[tuple[int, float]](), 1 + recipe.preprocess.context_sentences
    pieces, told_by = _counters(recipe)
    for corpus, (count, weight) in zip(recipe.data.train, corpora, strict=True):
        read, known = min(max(1, round(MOST_PAIRS * count * weight / max(lines, 1))), count), len(sides[0])
        for source, target in islice(corpus.build().pairs("replace"), read):
            if source.strip() and target.strip():
                sides[0].append(before * (pieces["source"](source) + 1) - 1 + (corpus.tag is not None))
                sides[1].append(pieces["target"](target))
        if len(sides[0]) > known:
            ranges.append((len(sides[0]) - known, weight * count / read))
    if not sides[0]:
        raise DataError(f"{recipe.data.train[0].files()[0]}: holds no text", "name the training files")
    source_N, target_N = (np.array(side, dtype=np.int32) for side in sides)
    pairs = sum(count * often for count, often in ranges)
    part = min(1.0, ENOUGH_PAIRS / pairs)
    return Lengths(source_N, target_N, tuple((count, often * part) for count, often in ranges), pairs, told_by)


def _counters(recipe: Recipe) -> tuple[dict[str, Callable[[str], int]], Literal["pieces", "corpus"]]:
    """What counts the pieces of each side's text: the vocabulary that training starts from, or a guess."""
    parent = parent_of(recipe)
    if parent is None:
        return {"source": guessed, "target": guessed}, "corpus"
    from nmt.subwords.vocabulary import Vocabulary

    def counter(path: Path) -> Callable[[str], int]:
        vocabulary = Vocabulary.load(path)
        return lambda text: len(vocabulary.encode(text))

    return {side: counter(path) for side, path in parent.vocabularies.items()}, "pieces"


def guessed(text: str) -> int:
    """About how many pieces `text` has in a vocabulary of some thousand pieces or more, within a tenth or so."""
    wide = sum(letter >= "\u2e80" for letter in text)
    letters = (len(text) - wide) / LETTERS_A_PIECE + wide * PIECES_A_WIDE_LETTER
    return max(1, round(max(PIECES_A_WORD * len(text.split()), letters)))


def _of_news() -> Lengths:
    """Random lengths spread as those of news text are: median 23, mean 27 tokens of source."""
    generator = np.random.default_rng(1)
    source = np.clip(generator.lognormal(3.13, 0.6, MOST_PAIRS), 1, 255).astype(np.int32)
    target = np.clip(source * generator.normal(1.05, 0.15, MOST_PAIRS), 1, 255).astype(np.int32)
    return Lengths(source, target, ((MOST_PAIRS, ENOUGH_PAIRS / MOST_PAIRS),), None, "news")


@dataclass(frozen=True)
class Drawn:
    """The updates that training makes of some lengths."""

    pairs: Pairs
    """Of these lengths, with random ids."""
    source: np.ndarray
    target: np.ndarray
    """Tokens of each pair of some updates, end marks counted."""
    updates: int
    updates_an_epoch: float | None
    batches: int
    """The most that one of them has: fewer than train.accumulate where there is too little text for more."""
    largest: int
    """Tokens on the longer side of the largest batch, padding counted."""


def drawn(recipe: Recipe, lengths: Lengths, batch_tokens: int, vocabulary: tuple[int, int]) -> Drawn:
    """The updates of the first epoch, or of its first group. Raises TrainingError where no pair fits."""
    from nmt.subwords.vocabulary import BOS, EOS, PAD

    max_source, max_target = side_limits(recipe)
    order = BatchOrder(
        lengths.source,
        lengths.target,
        batch_tokens=batch_tokens,
        accumulate=recipe.train.accumulate,
        max_source_tokens=max_source,
        max_target_tokens=max_target,
        seed=derive(recipe.seed, "data"),
        corpora=lengths.corpora,
    )
    sides = (Invented(lengths.source, vocabulary[0]), Invented(lengths.target, vocabulary[1]))
    pairs = Pairs(*sides, order, bos=BOS, eos=EOS, pad=PAD)
    updates = updates_of(pairs, 0, 0)
    batches = [rows for update in updates for rows in update]
    rows = np.concatenate(batches)
    own = sum(count * weight for count, weight in lengths.corpora)
    whole = None if lengths.pairs is None else len(updates) * order.groups * lengths.pairs / own
    longer = np.maximum(lengths.source, lengths.target) + 1
    return Drawn(
        pairs,
        lengths.source[rows] + 1,
        lengths.target[rows] + 1,
        len(updates),
        whole,
        max(map(len, updates)),
        max(len(batch) * int(longer[batch].max()) for batch in batches),
    )


class Invented:
    """Sequences of given lengths, of random ids."""

    def __init__(self, lengths: np.ndarray, vocabulary: int) -> None:
        self.lengths, self.vocabulary = lengths, vocabulary

    def __getitem__(self, index: int, /) -> np.ndarray:
        """The same ids every time."""
        from nmt.subwords.vocabulary import EOS

        return np.random.default_rng(index).integers(EOS + 1, max(self.vocabulary, EOS + 2), int(self.lengths[index]))
