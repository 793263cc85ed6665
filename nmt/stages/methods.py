"""What some methods of training make of a run folder's pairs before they are trained on."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from nmt.batches.shards import Shard
from nmt.recipe import Recipe
from nmt.stages.stage import RunFolder
from nmt.train.seeds import derive

if TYPE_CHECKING:
    from nmt.batches.links import Links
    from nmt.subwords.vocabulary import Vocabulary
    from nmt.train.config import GuidedAlignmentConfig
    from nmt.train.data import Order, Pairs
    from nmt.train.ranks import Ranks

OrderOf = Callable[[np.ndarray, np.ndarray], "Order"]


@contextmanager
def sampled(
    recipe: Recipe,
    run: RunFolder,
    pairs: Pairs,
    order_of: OrderOf,
    vocabularies: tuple[Vocabulary, Vocabulary],
    ranks: Ranks,
) -> Iterator[Pairs]:
    """`pairs`, or, with [train] subword_dropout, the same pairs in other subwords every epoch, as shards on disk.

    `order_of` plans the batches of sentences with given lengths.
    """
    dropout = recipe.train.subword_dropout
    if dropout is None:
        yield pairs
        return
    assert recipe.train.batch_tokens != "auto"
    from nmt.batches.drawn import Side
    from nmt.train.sampled import SampledPairs, epochs

    sides = {
        name: Side(
            run.preprocess / f"train.{name}",
            vocabulary.path,
            run.shards / f"train.{name}",
            min(limit, recipe.train.batch_tokens) - 1,
        )
        for name, vocabulary, limit in zip(("source", "target"), vocabularies, side_limits(recipe), strict=True)
    }
    with epochs(run.path / "sampled", sides, dropout, derive(recipe.seed, "subwords"), ranks) as made:
        yield SampledPairs(pairs, made, order_of)


def aligned(recipe: Recipe, run: RunFolder, pairs: Pairs, vocabularies: tuple[Vocabulary, Vocabulary]) -> Pairs:
    """`pairs`, or, with [train.guided_alignment], the same pairs with their links. Raises DataError."""
    guide = recipe.train.guided_alignment
    if guide is None:
        return pairs
    from nmt.batches.links import WordsOfPieces
    from nmt.train.guided import AlignedPairs

    tags = frozenset(vocabularies[0].reserved.values())
    words = (WordsOfPieces(vocabularies[0]), WordsOfPieces(vocabularies[1])) if guide.units == "words" else None
    return AlignedPairs(pairs, links_of(guide, run, tags), words, tags)


def links_of(guide: GuidedAlignmentConfig, run: RunFolder, tags: Container[int] = frozenset()) -> Links:
    """The links of a run's training pairs. `tags` are the ids of tags; links of words do not need them.

    Raises DataError, with file and line, for those that do not fit the run's text, or its shards if they are of pieces.
    """
    from nmt.batches.links import piece_counts, read_links, word_counts

    source, target = (run.preprocess / f"train.{name}" for name in ("source", "target"))
    if guide.units == "words":
        return read_links(guide.path, word_counts(source, target), guide.units, source)
    ids, other_ids = (Shard.open(run.shards / path.name) for path in (source, target))
    return read_links(guide.path, piece_counts(ids, other_ids, tags), guide.units, source)


def side_limits(recipe: Recipe) -> tuple[int, int]:
    """Most tokens of a training pair's source and target, the end mark counted."""
    settings = recipe.train
    longest = recipe.model.max_length()
    source, target = settings.max_source_tokens, settings.max_target_tokens
    return min(source, longest or source), min(target, longest or target)
