"""Shortlists: what they allow, what they learn, and lines without one left alone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from search.models import sentences
from search.tables import EOS

from nmt.errors import DataError
from nmt.search.control.lexicon import translations
from nmt.search.control.request import Request
from nmt.search.control.shortlist import Lexicon, Shortlist
from nmt.search.translate import Translator

LINES = sentences(10, 6, seed=44)


def test_only_what_is_listed_stays_possible() -> None:
    before = torch.randn(3, 9).log_softmax(-1)
    after = Shortlist([{3, 5}, None], torch.device("cpu"))(before.clone(), torch.zeros(3, 0), [0, 1, 0])
    for row, allowed in ((0, {3, 5}), (1, set(range(9))), (2, {3, 5})):
        assert {i for i in range(9) if after[row, i] > -torch.inf} == allowed
        assert torch.equal(after[row, sorted(allowed)], before[row, sorted(allowed)])


def test_the_best_of_each_source_piece_and_what_is_always_allowed() -> None:
    lexicon = Lexicon([(4, 7, 0.1), (4, 8, 0.6), (4, 9, 0.3), (5, 7, 1.0)], always=[20], best=2)
    assert lexicon.allowed([4]) == {EOS, 20, 8, 9}
    assert lexicon.allowed([4, 5, 6]) == {EOS, 20, 8, 9, 7}
    assert lexicon.allowed([]) == {EOS, 20}


def test_files_hold_target_source_and_probability(tmp_path: Path) -> None:
    source, target = (
        ["<pad>", "<unk>", "<s>", "</s>", "▁a", "▁b"],
        ["<pad>", "<unk>", "<s>", "</s>", "▁x", "<0x41>", "▁y"],
    )
    (tmp_path / "lex").write_text("▁x ▁a 0.7\n▁y ▁b 0.5\n▁y NULL 0.2\n▁y ▁a 0.1\n", encoding="utf-8")
    lexicon = Lexicon.read(tmp_path / "lex", source, target, best=1, frequent=0)
    assert lexicon.allowed([4]) == {EOS, 4, 5}
    assert lexicon.allowed([5]) == {EOS, 6, 5}
    assert Lexicon.read(tmp_path / "lex", source, target, best=1, frequent=1).allowed([5]) == {EOS, 4, 5, 6}
    for text, words in (("▁x ▁a\n", ":1: "), ("▁x ▁a much\n", ":1: "), ("bal kor 0.5\n", "no pair")):
        (tmp_path / "lex").write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=words):
            Lexicon.read(tmp_path / "lex", source, target)


def test_translations_are_learned_from_pairs() -> None:
    draw = random.Random(2)
    sources = [[draw.randrange(10, 30) for _ in range(draw.randint(1, 7))] for _ in range(300)]
    pairs = [(ids, [i + 100 for i in reversed(ids)]) for ids in sources]
    best: dict[int, tuple[int, float]] = {}
    for source, target, probability in translations(pairs):
        best.setdefault(source, (target, probability))
    assert {source: target for source, (target, _) in best.items()} == {i: i + 100 for i in range(10, 30)}
    assert min(probability for _, probability in best.values()) > 0.5
    assert list(translations([])) == []


def test_a_line_is_written_with_its_own_list_and_others_are_left_alone(random_translator: Translator) -> None:
    vocabulary = random_translator.target_vocabulary
    free = list(random_translator.stream(LINES))
    lexicon = Lexicon([(i, i, 1.0) for i in range(4, len(vocabulary))], always=[])
    strict = list(random_translator.stream([Request(line, shortlist=lexicon) for line in LINES], n_best=3))
    for line, found in zip(LINES, strict, strict=True):
        allowed = set(vocabulary.pieces(line))
        assert all(set(candidate.tokens) <= allowed for candidate in found.alternatives)
    mixed = [Request(line, shortlist=lexicon if i % 2 else None) for i, line in enumerate(LINES)]
    texts = random_translator.translate(mixed)
    assert texts == [(strict if i % 2 else free)[i].text for i in range(len(LINES))]
    (asked,) = random_translator.translate([Request(LINES[0], shortlist=lexicon, require=("x9z",))])
    assert "x9z" in asked
    whole = Lexicon([], always=range(len(vocabulary)))
    assert random_translator.translate([Request(line, shortlist=whole) for line in LINES]) == [t.text for t in free]
