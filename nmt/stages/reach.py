"""How many pieces a small corpus has in it, before anything is trained: a vocabulary is learned to see."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from nmt.corpus.lines import open_lines
from nmt.errors import NmtError
from nmt.recipe import Recipe
from nmt.wording import counted

MOST_LINES = 10_000
"""Of a file; larger corpora have pieces enough, and learning from them takes time."""


def cautions(recipe: Recipe) -> Iterator[str]:
    """What of `recipe` will turn out otherwise than it says, yet stops nothing: vocabularies that stay smaller."""
    if recipe.train.start_from is not None:  # the pieces are there already
        return
    try:
        sides = _texts(recipe)
        named = {"": sides["source"] + sides["target"]} if recipe.bpe.shared else sides
        for side, lines in named.items() if all(sides.values()) else ():
            count = pieces(recipe, lines, tagged=side != "target")
            if count < recipe.bpe.size:
                text = f"the {side} side of the training text" if side else "the training text"
                has = f"{text} has about {counted(count, 'piece')} in it"
                yield f"[bpe] size = {recipe.bpe.size}: {has}; so many will be used"
    except NmtError:
        return  # a problem, which is told as such


def pieces(recipe: Recipe, lines: list[str], tagged: bool) -> int:
    """How many pieces [bpe] learns from these lines. Raises what learning raises."""
    from nmt.subwords.vocabulary import SEPARATOR, Vocabulary  # loads sentencepiece

    separators = [SEPARATOR] if recipe.preprocess.context_sentences else []
    tags = [*recipe.data.tags, *separators] if tagged else []
    with TemporaryDirectory(prefix="pieces-") as name:
        text, model = Path(name) / "text", Path(name) / "vocabulary.model"
        with open_lines(text) as out:
            for line in lines:
                out.write(line)
        for _ in recipe.bpe.learn([text], model, recipe.seed, tags):
            pass
        return len(Vocabulary.load(model))


def _texts(recipe: Recipe) -> dict[str, list[str]]:
    """The lines of each side of all training corpora, or none where one has more than MOST_LINES."""
    sides: dict[str, list[str]] = {"source": [], "target": []}
    for corpus in recipe.data.train:
        pairs = list(islice(corpus.build().pairs("replace"), MOST_LINES + 1))
        if len(pairs) > MOST_LINES:
            return {side: [] for side in sides}
        for side, lines in zip(sides, zip(*pairs, strict=True), strict=False):
            sides[side] += lines
    return sides
