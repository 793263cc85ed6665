"""What stands before the source sentences of shards: a tag, and the sentences before them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.corpus.lines import read_lines
from nmt.errors import DataError
from nmt.files import read_json
from nmt.stages.stage import RunFolder
from nmt.subwords.context import context_ids

if TYPE_CHECKING:
    from nmt.subwords.vocabulary import Vocabulary

Tagged = list[tuple[int, str]]
"""Lines in a row, and the tag before each of their source sentences or nothing."""
Ids = list[list[int]]
Leading = Callable[[Ids], Ids]
"""Puts before the next sentences of a text what belongs there."""


def tags_of(run: RunFolder, split: str) -> Tagged:
    """How many lines of a split come from each of its sets, in order, and with which tag."""
    path = run.preprocess / "report.json"
    if not path.is_file():
        return []
    report = read_json(path)
    sets = report["corpora"] if split == "train" else report.get("valid_sets") or [report["valid"]]
    return [(int(one["kept"]), one.get("tag") or "") for one in sets]


def _unled(sequences: Ids) -> Ids:
    return sequences


unled: Leading = _unled
"""Leaves sentences as they are."""


def leading(tagged: Tagged, vocabulary: Vocabulary, context: Path, sentences: int, longest: int) -> Leading:
    """What puts tags before sentences, and before them again up to `sentences` lines of the file `context`.

    A source then has at most `longest` tokens, its end mark counted, unless it has more without any context.
    """
    if not sentences and not any(tag for _, tag in tagged):
        return unled
    tags = chain.from_iterable(repeat([vocabulary.tags[tag]] if tag else [], count) for count, tag in tagged)
    if not sentences:
        return lambda sequences: [next(tags) + ids for ids in sequences]
    lines, separator = read_lines(context), vocabulary.separator
    assert separator is not None

    def lead(sequences: Ids) -> Ids:
        said = vocabulary.encode_many(islice(lines, sentences * len(sequences)))
        if len(said) < sentences * len(sequences):
            raise DataError(f"{context}: has fewer lines than its text needs", "run nmt preprocess again")
        led = []
        for row, ids in enumerate(sequences):
            tag, before = next(tags, []), said[row * sentences : (row + 1) * sentences]
            led.append([*tag, *context_ids(before, separator, longest - 1 - len(tag) - len(ids)), *ids])
        return led

    return lead
