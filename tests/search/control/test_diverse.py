"""Diverse beam search: the paper written out finds the same, one group is beam search, and lines differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from search.models import sentences
from search.tables import BOS, EOS, FIRST, PAD, UNK, start, stepper
from torch import Tensor

from nmt.errors import NmtError
from nmt.search.beam import search
from nmt.search.control.core import Constraints
from nmt.search.control.diverse import diverse_search
from nmt.search.control.repeat import NoRepeat
from nmt.search.control.request import Request
from nmt.search.hypothesis import Hypothesis
from nmt.search.length import parse_penalty
from nmt.search.translate import Translator

Logits = Callable[[int, tuple[int, ...]], Tensor]
PENALTY = parse_penalty("gnmt:0.6")
LINES = sentences(12, 8, seed=23)


def table(seed: int, size: int = FIRST + 6) -> Logits:
    def logits(sentence: int, prefix: tuple[int, ...]) -> Tensor:
        return torch.randn(size, generator=torch.Generator().manual_seed(hash((seed, sentence, prefix)) % 2**31)) * 2

    return logits


def diverse(
    logits: Logits, limits: list[int], groups: int, width: int, strengths: list[float], ngram: int = 0
) -> list[list[Hypothesis]]:
    return diverse_search(
        stepper(logits),
        start(len(limits)),
        bos=BOS,
        eos=EOS,
        banned=[PAD, UNK, BOS],
        limits=limits,
        groups=groups,
        width=width,
        strengths=strengths,
        penalty=PENALTY,
        constraints=Constraints([NoRepeat([ngram] * len(limits))], [()] * len(limits), EOS) if ngram else None,
    )


def written_out(
    logits: Logits, sentence: int, limit: int, groups: int, width: int, strength: float
) -> set[tuple[int, ...]]:
    """The paper's Algorithm 1 for one sentence; a group is done once as many have ended as it is wide."""
    live: list[list[tuple[tuple[int, ...], float, float]]] = [[((), 0.0, 0.0)] for _ in range(groups)]
    ended: list[list[tuple[float, tuple[int, ...]]]] = [[] for _ in range(groups)]
    for length in range(limit + 1):
        taken: Counter[int] = Counter()
        for group in range(groups):
            found = []
            for ids, worth, total in live[group]:
                row = logits(sentence, ids).log_softmax(-1)
                for token in [EOS, *range(FIRST, len(row))] if length < limit else [EOS]:
                    lost = strength * taken[token] * (token != EOS)
                    found.append((worth + float(row[token]) - lost, total + float(row[token]), ids, token))
            found.sort(key=lambda one: -one[0])
            ended[group] += [
                (PENALTY.score(total, len(ids) + 1), ids) for _, total, ids, token in found[:width] if token == EOS
            ]
            going_on = [((*ids, token), worth, total) for worth, total, ids, token in found if token != EOS]
            live[group] = going_on[:width] if len(ended[group]) < width else []
            taken.update(ids[-1] for ids, _, _ in live[group])
    return {ids for group in ended for _, ids in sorted(group, reverse=True)[:width]}


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    groups=st.integers(1, 4),
    width=st.integers(1, 3),
    strengths=st.lists(st.sampled_from([0.0, 0.3, 1.0, 20.0]), min_size=1, max_size=3),
)
def test_it_finds_what_the_paper_s_algorithm_finds(seed: int, groups: int, width: int, strengths: list[float]) -> None:
    logits = table(seed)
    limits = [2 + (seed + i) % 4 for i, _ in enumerate(strengths)]
    found = diverse(logits, limits, groups, width, strengths)
    for i, hypotheses in enumerate(found):
        assert {h.ids for h in hypotheses} == written_out(logits, i, limits[i], groups, width, strengths[i])
        for h in hypotheses:
            rows = [logits(i, h.ids[:n]).log_softmax(-1) for n in range(len(h.ids) + 1)]
            own = sum(float(row[token]) for row, token in zip(rows, [*h.ids, EOS], strict=True))
            assert h.log_probability == pytest.approx(own, abs=1e-4)
            assert h.score == pytest.approx(PENALTY.score(own, len(h.ids) + 1), abs=1e-4)
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), width=st.integers(1, 4))
def test_a_group_of_one_is_greedy_and_groups_that_lose_nothing_are_equal(seed: int, width: int) -> None:
    logits, limits = table(seed), [5, 3, 7]
    greedy = search(
        stepper(logits), start(3), bos=BOS, eos=EOS, pad=PAD, limits_B=limits, beam=1, penalty=PENALTY, banned=[UNK]
    )
    same = [[(h.ids, h.finished) for h in row] for row in diverse(logits, limits, 1, 1, [1.0] * 3)]
    assert same == [[(h.ids, h.finished) for h in row] for row in greedy]
    assert diverse(logits, limits, 3, width, [0.0] * 3) == diverse(logits, limits, 1, width, [1.0] * 3)


def test_groups_of_one_that_pay_enough_never_write_the_same_word_at_the_same_place() -> None:
    for row in diverse(table(5), [4] * 6, 4, 1, [1e6] * 6):
        for place in range(4):
            words = [h.ids[place] for h in row if len(h.ids) > place]
            assert len(set(words)) == len(words)


def test_constraints_hold_in_every_group() -> None:
    for row in diverse(table(8), [9] * 4, 2, 2, [1.0] * 4, ngram=1):
        assert all(len(set(h.ids)) == len(h.ids) for h in row)


def test_lines_of_a_batch_have_their_own_diversity(random_translator: Translator) -> None:
    groups = {"beam": 4, "beam_groups": 2}
    free = [tuple(c.text for c in t.alternatives) for t in random_translator.stream(LINES, beam=4, n_best=4)]
    own = [
        tuple(c.text for c in t.alternatives)
        for t in random_translator.stream(LINES, n_best=4, diversity=3.0, **groups)
    ]
    assert own != free
    mixed = [Request(line, settings={"diversity": 3.0 * (i % 2)}) for i, line in enumerate(LINES)]
    found = [tuple(c.text for c in t.alternatives) for t in random_translator.stream(mixed, n_best=4, **groups)]
    assert found == [(own if i % 2 else free)[i] for i in range(len(LINES))]
    one_by_one = random_translator.stream(LINES, n_best=4, diversity=3.0, batch_lines=1, **groups)
    assert [tuple(c.text for c in t.alternatives) for t in one_by_one] == own


def test_alternatives_are_more_diverse(random_translator: Translator) -> None:
    def words(**how: float) -> int:
        found = random_translator.stream(LINES, beam=6, n_best=4, **how)
        return sum(len({token for c in t.alternatives for token in c.tokens}) for t in found)

    assert words(beam_groups=6, diversity=2.0) > 1.2 * words()


def test_a_beam_that_has_no_such_groups_is_refused(random_translator: Translator) -> None:
    with pytest.raises(NmtError, match="beam_groups = 3"):
        random_translator.translate(LINES, beam=4, beam_groups=3)
