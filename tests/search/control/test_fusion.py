"""A language model and other models have their say: as much as they are given, and line by line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from search.models import random_model, sentences, translator

from nmt.search.control.fusion import Fusion
from nmt.search.control.request import Request
from nmt.search.control.rerank import Rescoring
from nmt.search.translate import Translator
from nmt.subwords.ngram import NgramModel, estimate
from nmt.subwords.vocabulary import BOS, EOS, Vocabulary

LINES = sentences(8, 6, seed=77)


def pieces(vocabulary: Vocabulary) -> list[str]:
    return [vocabulary.piece(i) for i in range(len(vocabulary))]


@pytest.fixture(scope="module")
def lm(random_translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> NgramModel:
    """Of the made-up words in their alphabetical order."""
    vocabulary, path = random_translator.target_vocabulary, tmp_path_factory.mktemp("lm") / "x.arpa"
    texts = [" ".join(sorted(line.split())) for line in sentences(300, seed=2)]
    lines = estimate([vocabulary.encode(text) for text in texts], pieces(vocabulary), 3)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return NgramModel.read(path, pieces(vocabulary))


@settings(max_examples=25)
@given(
    rows=st.lists(st.lists(st.integers(4, 300), min_size=4, max_size=4), min_size=1, max_size=4),
    length=st.integers(0, 4),
)
def test_it_adds_weighted_log_probabilities(lm: NgramModel, rows: list[list[int]], length: int) -> None:
    size, weights = len(lm.unigram_V), [0.5, 0.0, 1.0, 0.2]
    models = [lm, lm, None, lm]
    before = torch.randn(len(rows), size).log_softmax(-1)
    before[:, 7] = -torch.inf
    ids = torch.tensor([row[:length] for row in rows], dtype=torch.long).view(len(rows), length)
    after = Fusion(models, weights, BOS, torch.device("cpu"))(before.clone(), ids, list(range(len(rows))))
    for i, row in enumerate(rows):
        own = lm.log_probs((BOS, *row[:length])[-2:]) if models[i] else np.zeros(size, np.float32)
        assert torch.allclose(after[i], before[i] + weights[i] * torch.from_numpy(own), atol=1e-4)


def test_a_heavy_language_model_is_followed_and_lines_have_their_own_weight(
    random_translator: Translator, lm: NgramModel
) -> None:
    free = random_translator.translate(LINES)
    heavy = random_translator.translate([Request(line, lm=lm) for line in LINES], lm_weight=30)
    assert heavy != free

    def fluent(texts: list[str]) -> float:
        ids = [[*random_translator.target_vocabulary.encode(text), EOS] for text in texts]
        each = [np.mean([lm.log_probs((BOS, *row[:i])[-2:])[row[i]] for i in range(len(row))]) for row in ids]
        return float(np.mean(each))

    assert fluent(heavy) > fluent(free) + 1
    for weight in (0.0, 30.0):
        mixed = [Request(line, lm=lm, settings={"lm_weight": weight * (i % 2)}) for i, line in enumerate(LINES)]
        found = random_translator.translate(mixed)
        assert found == [(heavy if i % 2 and weight else free)[i] for i in range(len(LINES))]
    assert random_translator.translate([Request(line, lm=lm) for line in LINES], lm_weight=30, batch_lines=1) == heavy


@pytest.fixture(scope="module")
def other(vocabulary_path: Path) -> Translator:
    return translator(vocabulary_path, model=random_model(len(Vocabulary.load(vocabulary_path)), seed=19))


def test_scores_are_the_weighted_sum_and_the_best_comes_first(random_translator: Translator, other: Translator) -> None:
    plain = list(random_translator.stream(LINES, n_best=4))
    found = [Rescoring([(other, 0.7), (random_translator, 0.1)], "gnmt:0.6")(t) for t in plain]
    for one, t in zip(found, plain, strict=True):
        texts = [c.text for c in t.alternatives]
        theirs = [m.rescore([t.source] * 4, texts, length_penalty="gnmt:0.6") for m in (other, random_translator)]
        expected = sorted(
            (
                (c.score + 0.7 * a.score + 0.1 * b.score, c.text)
                for c, a, b in zip(t.alternatives, *theirs, strict=True)
            ),
            reverse=True,
        )
        assert [c.score for c in one.alternatives] == pytest.approx([score for score, _ in expected], abs=1e-3)
        assert {c.text for c in one.alternatives} == set(texts)
        assert [name for name, _ in one.best.features] == ["Rescore0", "Rescore1"]
    assert any(one.text != t.text for one, t in zip(found, plain, strict=True))


def test_no_weight_changes_no_order(random_translator: Translator, other: Translator) -> None:
    for t in random_translator.stream(LINES, n_best=4):
        same = Rescoring([(other, 0.0)])(t)
        assert [(c.tokens, c.score) for c in same.alternatives] == [(c.tokens, c.score) for c in t.alternatives]
