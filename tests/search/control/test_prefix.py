"""Translations that begin as asked."""

from __future__ import annotations

import pytest
import torch
from search.models import WORDS, sentences
from search.tables import BOS, EOS, FIRST, PAD, UNK, start, stepper

from nmt.search.beam import search
from nmt.search.control.core import Constraints
from nmt.search.control.request import Request
from nmt.search.length import parse_penalty
from nmt.search.translate import Translator

LINES = sentences(12, 8, seed=21)
PREFIXES = ["", "bal", "kor dem", "gol gom ban", "  ", "é\u4e2d", "ba", "dem " * 30, "bal.", "<s> {0}", "", "Zürich"]


@pytest.mark.parametrize("beam", [1, 4])
def test_every_hypothesis_begins_with_its_own_prefix_and_the_others_are_free(
    random_translator: Translator, beam: int
) -> None:
    requests = [Request(line, prefix=prefix) for line, prefix in zip(LINES, PREFIXES, strict=True)]
    free = list(random_translator.stream(LINES, n_best=beam, beam=beam))
    begun = list(random_translator.stream(requests, n_best=beam, beam=beam))
    for prefix, theirs, ours in zip(PREFIXES, free, begun, strict=True):
        assert not ours.cautions
        if not prefix.strip():
            assert [c.tokens for c in ours.alternatives] == [c.tokens for c in theirs.alternatives]
        assert all(c.text.startswith(prefix.rstrip()) for c in ours.alternatives)
        assert len({c.tokens for c in ours.alternatives}) == len(ours.alternatives)
        room = len(prefix.split()) < 30  # the long one ends where it may not go on
        assert len(ours.alternatives) == (beam if room else 1)
        scores = [c.score for c in ours.alternatives]
        assert scores == sorted(scores, reverse=True)


def test_a_translation_begun_with_its_own_beginning_stays_what_greedy_search_finds(
    random_translator: Translator,
) -> None:
    begun, whole = [], []
    for t in random_translator.stream(sentences(60), beam=1):
        prefix = t.text[:3].rstrip()
        pieces = tuple(random_translator.target_vocabulary.pieces(prefix))
        if prefix and t.best.tokens[: len(pieces)] == pieces:  # it may have been spelled otherwise
            begun.append(Request(t.source, prefix=prefix))
            whole.append(t.text)
    assert len(begun) > 3
    assert random_translator.translate(begun, beam=1) == whole


def test_the_score_counts_the_prefix_as_rescoring_does(random_translator: Translator) -> None:
    (found,) = random_translator.stream([Request("bal kor", prefix=" ".join(WORDS[:3]))])
    if tuple(random_translator.target_vocabulary.pieces(found.text)) == found.best.tokens:
        (scored,) = random_translator.rescore(["bal kor"], [found.text])
        assert scored.log_probability == pytest.approx(found.best.log_probability, abs=1e-4)


def test_no_constraint_counts_within_the_prefix(random_translator: Translator) -> None:
    request = Request("bal kor", prefix="bal bal bal", settings={"no_repeat_ngram": 1})
    assert random_translator.translate([request])[0].startswith("bal bal bal")


def test_a_split_line_begins_once(random_translator: Translator) -> None:
    line = "bal kor. dem gom. ban bar."
    (found,) = random_translator.stream([Request(line, prefix="kor")], max_source_tokens=8)
    assert "split" in found.cautions[0]
    assert found.text.startswith("kor")


@pytest.mark.parametrize("beam", [1, 3])
def test_what_search_never_chooses_may_be_forced(beam: int) -> None:
    def flat(_: int, prefix: tuple[int, ...]) -> torch.Tensor:
        return torch.zeros(FIRST + 4)

    (found,) = search(
        stepper(flat),
        start(1),
        bos=BOS,
        eos=EOS,
        pad=PAD,
        limits_B=[4],
        beam=beam,
        penalty=parse_penalty("none"),
        banned=[UNK],
        constraints=Constraints([], [(UNK, FIRST)], EOS),
    )
    assert found[0].ids[:2] == (UNK, FIRST)
