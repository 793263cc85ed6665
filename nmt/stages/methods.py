"""What some methods of training make of a run folder's pairs before they are trained on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from nmt.batches.shards import Shard
from nmt.recipe import Recipe
from nmt.stages.stage import RunFolder
from nmt.train.seeds import derive

if TYPE_CHECKING:
    from nmt.subwords.vocabulary import Vocabulary
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
    from nmt.batches.links import WordsOfPieces, piece_counts, read_links, word_counts
    from nmt.train.guided import AlignedPairs

    source, target = (run.preprocess / f"train.{name}" for name in ("source", "target"))
    tags = frozenset(vocabularies[0].tags.values())
    if guide.units == "words":
        words = WordsOfPieces(vocabularies[0]), WordsOfPieces(vocabularies[1])
        links = read_links(guide.path, word_counts(source, target), guide.units, source)
        return AlignedPairs(pairs, links, words, tags)
    ids, other_ids = (Shard.open(run.shards / path.name) for path in (source, target))
    counts = piece_counts(ids, other_ids, tags)
    return AlignedPairs(pairs, read_links(guide.path, counts, guide.units, source), None, tags)


def side_limits(recipe: Recipe) -> tuple[int, int]:
    """Most tokens of a training pair's source and target, the end mark counted."""
    settings = recipe.train
    longest = recipe.model.max_length()
    source, target = settings.max_source_tokens, settings.max_target_tokens
    return min(source, longest or source), min(target, longest or target)
