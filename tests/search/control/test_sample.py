"""Sampling: the right distribution, and random numbers that belong to the line."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from search.models import sentences
from search.tables import BOS, EOS, FIRST, PAD, UNK, start, stepper
from torch import Tensor

from nmt.errors import NmtError
from nmt.search.control.request import Request
from nmt.search.control.sample import Draw, _kept, sample
from nmt.search.length import parse_penalty
from nmt.search.translate import Translator

LINES = sentences(15, 8, seed=9)


def test_tokens_come_as_often_as_they_are_probable() -> None:
    wanted = torch.tensor([0.5, 0.3, 0.15, 0.05])

    def one_word(_: int, prefix: tuple[int, ...]) -> Tensor:
        row = torch.full((FIRST + 4,), -1e4)
        if prefix:
            row[EOS] = 0
        else:
            row[FIRST:] = wanted.log()
        return row

    many = 400
    for temperature in (1.0, 0.5):
        draws = [Draw(f"{temperature} {i}", temperature) for i in range(many)]
        found = sample(
            stepper(one_word),
            start(many),
            bos=BOS,
            eos=EOS,
            banned=[PAD, UNK, BOS],
            limits=[3] * many,
            draws=draws,
            penalty=parse_penalty("none"),
        )
        counts = Counter(hypothesis.ids[0] - FIRST for (hypothesis,) in found)
        shares = wanted ** (1 / temperature) / (wanted ** (1 / temperature)).sum()
        for word, share in enumerate(shares.tolist()):
            assert counts[word] / many == pytest.approx(share, abs=4 * (share * (1 - share) / many) ** 0.5 + 1e-9)
        assert {h.ids: h.log_probability for (h,) in found}[FIRST,] == pytest.approx(float(wanted[0].log()), abs=1e-4)


@settings(max_examples=60)
@given(
    sevenths=st.lists(st.integers(-60, 0), min_size=2, max_size=9, unique=True),
    top_k=st.integers(0, 10),
    top_p=st.floats(0.05, 1),
)
def test_the_most_probable_tokens_are_kept_and_no_others(sevenths: list[int], top_k: int, top_p: float) -> None:
    scores = [number / 7 for number in sevenths]
    row = torch.tensor([scores])
    order = sorted(range(len(scores)), key=lambda i: -float(row[0, i]))[: top_k or None]
    probs = row[0, order].softmax(-1, dtype=torch.float64).tolist()
    expected, mass = set(), 0.0
    for token, prob in zip(order, probs, strict=True):
        if mass >= top_p and top_p < 1:
            break
        expected.add(token)
        mass += prob
    kept = _kept(row, [Draw("", 1.0, top_k, top_p)])
    assert {i for i, x in enumerate(kept[0].tolist()) if x > -torch.inf} == expected


def test_drawing_from_one_token_is_greedy_search(random_translator: Translator) -> None:
    greedy = [(t.text, t.best.finished) for t in random_translator.stream(LINES, beam=1)]
    for how in ({"top_k": 1}, {"top_p": 1e-9}, {"temperature": 1e-4}):
        assert [(t.text, t.best.finished) for t in random_translator.stream(LINES, sample=True, **how)] == greedy


def test_a_sample_depends_on_seed_and_line_only(random_translator: Translator) -> None:
    drawn = random_translator.translate(LINES, sample=True)
    assert random_translator.translate(LINES, sample=True, batch_lines=2) == drawn
    assert random_translator.translate(LINES, sample=True, batch_tokens=1, beam=1) == drawn
    assert random_translator.translate(LINES[::-1], sample=True)[::-1] == drawn
    assert random_translator.translate(LINES, sample=True, seed=2) != drawn
    assert len(set(drawn)) > 10


def test_more_samples_of_a_line_begin_with_the_same_ones(random_translator: Translator) -> None:
    few = list(random_translator.stream(LINES, sample=True, n_best=2))
    many = list(random_translator.stream(LINES, sample=True, n_best=7))
    for two, seven in zip(few, many, strict=True):
        assert len(seven.alternatives) == 7
        assert {c.tokens for c in two.alternatives} <= {c.tokens for c in seven.alternatives}
        assert [c.score for c in seven.alternatives] == sorted((c.score for c in seven.alternatives), reverse=True)
    assert sum(len({c.tokens for c in t.alternatives}) for t in many) > 5 * len(LINES)


def test_samples_have_the_models_own_log_probability(random_translator: Translator) -> None:
    found = list(random_translator.stream(LINES, sample=True, temperature=0.7, top_k=9))
    vocabulary = random_translator.target_vocabulary
    same = [t for t in found if tuple(vocabulary.pieces(t.text)) == t.best.tokens]
    assert same
    for t, scored in zip(
        same, random_translator.rescore([t.source for t in same], [t.text for t in same]), strict=True
    ):
        assert t.best.log_probability == pytest.approx(scored.log_probability, abs=1e-3)


def test_constraints_hold_for_samples_too(random_translator: Translator) -> None:
    requests = [Request(line, prefix="bal kor", settings={"min_length": 8}) for line in LINES]
    for t in random_translator.stream(requests, sample=True, n_best=3, no_repeat_ngram=1):
        assert all(c.text.startswith("bal kor") for c in t.alternatives)
        assert all(len(c.tokens) >= 8 for c in t.alternatives)


def test_lines_that_are_sampled_leave_others_alone(random_translator: Translator) -> None:
    mixed = [Request(line, settings={"sample": i % 2 == 1}) for i, line in enumerate(LINES)]
    free, drawn = random_translator.translate(LINES), random_translator.translate(LINES, sample=True)
    assert random_translator.translate(mixed) == [(drawn if i % 2 else free)[i] for i in range(len(LINES))]


@pytest.mark.parametrize("settings", [{"temperature": 0}, {"top_p": 0}, {"top_p": 1.5}, {"top_k": -1}])
def test_values_out_of_range_are_refused(random_translator: Translator, settings: dict[str, float]) -> None:
    with pytest.raises(NmtError, match=next(iter(settings))):
        random_translator.stream(LINES, sample=True, **settings)
