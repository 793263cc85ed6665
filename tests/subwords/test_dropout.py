"""BPE-dropout is the paper's algorithm on sentencepiece's merges, and every draw can be repeated."""

from __future__ import annotations

import subprocess
import sys
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.subwords.config import SubwordConfig
from nmt.subwords.dropout import MergeDropout
from nmt.subwords.vocabulary import Vocabulary

LINES = [
    f"the {a} {b} of the river  is {a}er than a {c}" for a in ("new", "slow") for b in ("mill", "bed") for c in "xyz"
]


@pytest.fixture(scope="module", params=[True, False], ids=["bytes", "unknown"])
def vocabulary(request, tmp_path_factory) -> Vocabulary:
    folder = tmp_path_factory.mktemp("dropout")
    (folder / "text").write_text("".join(line + "\n" for line in LINES * 9))
    settings = SubwordConfig(size=330 if request.param else 75, byte_fallback=request.param)
    for _ in settings.learn([folder / "text"], folder / "model", 1):
        pass
    return Vocabulary.load(folder / "model")


@given(st.text("the millrvw \u00e9\u65e5\u8a9e\u2581\U0010ff00<0x41>\0", max_size=30))
@settings(max_examples=100)
def test_without_dropout_it_is_sentencepieces_encoding(vocabulary: Vocabulary, text: str) -> None:
    assert MergeDropout(vocabulary, 0.0).encode(text, 1) == vocabulary.encode(text)


@given(st.text("the millrvw \u00e9\u65e5\u2581", max_size=30), st.integers(0, 2**70))
@settings(max_examples=50)
def test_nothing_is_lost_and_the_seed_tells_all(vocabulary: Vocabulary, text: str, seed: int) -> None:
    first, second = (MergeDropout(vocabulary, 0.4) for _ in range(2))
    for line in LINES:
        second.encode(line, 5)
    assert first.encode(text, seed) == second.encode(text, seed)
    assert vocabulary.decode(first.encode(text, seed)) == vocabulary.decode(vocabulary.encode(text))


def test_another_process_draws_the_same(vocabulary: Vocabulary) -> None:
    code = (
        "import sys; from pathlib import Path; from nmt.subwords.dropout import MergeDropout;"
        "from nmt.subwords.vocabulary import Vocabulary;"
        "print([MergeDropout(Vocabulary.load(Path(sys.argv[1])), 0.3).encode(sys.argv[2], i) for i in range(9)])"
    )
    command = [sys.executable, "-c", code, str(vocabulary.path), LINES[0]]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    mine = [MergeDropout(vocabulary, 0.3).encode(LINES[0], i) for i in range(9)]
    assert told.strip() == str(mine) and len(set(map(tuple, mine))) > 5


def naive(vocabulary: Vocabulary, word: str, dropout: float, random: Random) -> tuple[str, ...]:
    """Provilkov et al. 2020, algorithm 1, word for word."""
    ranks = {vocabulary.piece(i): i for i in range(4, len(vocabulary))}
    pieces = list("\u2581" + word)
    while True:
        merges = [(ranks[a + b], i) for i, (a, b) in enumerate(zip(pieces, pieces[1:], strict=False)) if a + b in ranks]
        merges = [merge for merge in merges if random.random() >= dropout]
        if not merges:
            return tuple(pieces)
        _, i = min(merges)
        pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]


@pytest.mark.parametrize("dropout", [0.1, 0.5])
def test_each_way_to_cut_a_word_is_as_likely_as_in_the_paper(dropout: float, vocabulary: Vocabulary) -> None:
    draws, random, cut = 4000, Random(3), MergeDropout(vocabulary, dropout)
    mine: dict[tuple[str, ...], int] = {}
    papers: dict[tuple[str, ...], int] = {}
    for seed in range(draws):
        found = tuple(map(vocabulary.piece, cut.encode("river", seed)))
        mine[found] = mine.get(found, 0) + 1
        found = naive(vocabulary, "river", dropout, random)
        papers[found] = papers.get(found, 0) + 1
    assert len(papers) > 3
    for way in papers | mine:
        assert mine.get(way, 0) / draws == pytest.approx(papers.get(way, 0) / draws, abs=0.035), way


def test_more_dropout_makes_more_pieces_up_to_single_characters(vocabulary: Vocabulary) -> None:
    def pieces(dropout: float) -> int:
        return sum(len(MergeDropout(vocabulary, dropout).encode(line, i)) for i, line in enumerate(LINES * 5))

    counts = [pieces(dropout) for dropout in (0.0, 0.1, 0.5, 1 - 1e-9)]
    assert counts == sorted(set(counts)) and counts[-1] == 5 * sum(len(line) + 1 for line in LINES)
