"""Alignments of given pairs: nothing but right for models that copy, and those of translating for all others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from search.copying import copier
from search.models import learn_vocabulary, sentences

from nmt.analysis.alignment import Alignments, align, pharaoh
from nmt.errors import DataError
from nmt.events import Caution
from nmt.score.alignment import Gold
from nmt.search.translate import Translator
from nmt.subwords.vocabulary import Vocabulary

LINES = [*sentences(40, 8, seed=3), "bal Zürich 中文 gom", ""]


def aligned(translator: Translator, sources: Sequence[str], targets: Sequence[str]) -> Alignments:
    *_, found = align(translator, sources, targets)
    assert isinstance(found, Alignments)
    return found


def diagonal(lines: Sequence[str], backwards: bool = False) -> list[Gold]:
    counts = [len(line.split()) for line in lines]
    links = [frozenset((i, n - 1 - i if backwards else i) for i in range(n)) for n in counts]
    return [Gold(sure, sure) for sure in links]


def test_a_model_that_copies_has_no_error(vocabulary_path: Path) -> None:
    found = aligned(copier(Vocabulary.load(vocabulary_path)), LINES, LINES)
    (score,) = found.scores(diagonal(LINES))
    assert (score.error, score.precision, score.recall) == (0, 1, 1)
    (score,) = found.scores(diagonal(LINES, backwards=True))
    assert score.error > 0.5


def test_a_model_that_writes_backwards_has_no_error_against_the_other_diagonal(tmp_path: Path) -> None:
    lines = sentences(40, 8, seed=3)  # every word is one piece
    reverse = copier(Vocabulary.load(learn_vocabulary(tmp_path, 460)), backwards=True)
    found = aligned(reverse, lines, [" ".join(line.split()[::-1]) for line in lines])
    assert found.scores(diagonal(lines, backwards=True))[0].error == 0


def test_the_usual_layer_links_a_translation_as_translating_does(ours: Translator) -> None:
    before = list(ours.stream(LINES, alignment=True))
    found = aligned(ours, LINES, [translation.text for translation in before])
    assert len(found.layers) == 2 and found.usual == 0
    same = [one.best.tokens == tuple(map(ours.target_vocabulary.piece, _ids(ours, one.text))) for one in before]
    assert sum(same) > 5  # a text may be spelled by other pieces than search chose
    for links, one, alike in zip(found.layers[0], before, same, strict=True):
        assert not alike or links == (one.best.alignment or ())
    assert ours.translate(LINES) == [one.text for one in before]


def _ids(translator: Translator, text: str) -> list[int]:
    return translator.target_vocabulary.encode(translator.target_cleaner.clean(text))


def test_links_do_not_depend_on_neighbours(ours: Translator) -> None:
    targets = LINES[::-1]
    together = aligned(ours, LINES, targets)
    for i in range(0, len(LINES), 5):
        alone = aligned(ours, LINES[i : i + 1], targets[i : i + 1])
        assert [layer[0] for layer in alone.layers] == [layer[i] for layer in together.layers]


def test_pairs_that_do_not_fit_have_no_links_which_is_said(ours: Translator) -> None:
    events = list(align(ours, ["bal", "bal kor " * 100, " "], ["kor", "kor", "dem"]))
    assert [event.text for event in events if isinstance(event, Caution)] == [
        "1 pair has no links: a side is too long for the model"
    ]
    assert isinstance(events[-1], Alignments)
    assert [pharaoh(links) for links in events[-1].layers[0]] == ["0-0", "", ""]


def test_unequal_files_are_refused(ours: Translator) -> None:
    with pytest.raises(DataError, match="--source has 2 lines, --target 1"):
        list(align(ours, ["a", "b"], ["c"]))
