"""Repetition: no n-gram twice, a price on written tokens, and neighbours that asked for nothing are left alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from search.models import sentences
from search.tables import BOS, EOS, FIRST, PAD, UNK, start, stepper
from torch import Tensor

from nmt.search.beam import search
from nmt.search.control.core import Constraint, Constraints
from nmt.search.control.repeat import NoRepeat, RepetitionPenalty, repeating
from nmt.search.control.request import Request
from nmt.search.hypothesis import Hypothesis
from nmt.search.length import parse_penalty
from nmt.search.translate import Translator

Logits = Callable[[int, tuple[int, ...]], Tensor]
CPU = torch.device("cpu")


def random_table(seed: int, size: int, sharpness: float = 1.0) -> Logits:
    """Logits drawn for every sentence and prefix; ends are rare, so that there is much to repeat."""

    def logits(sentence: int, prefix: tuple[int, ...]) -> Tensor:
        generator = torch.Generator().manual_seed(hash((seed, sentence, prefix)) % 2**31)
        row = torch.randn(size, generator=generator) * sharpness
        row[EOS] -= 3
        return row

    return logits


def run(logits: Logits, limits: Sequence[int], beam: int, *constraints: Constraint) -> list[list[Hypothesis]]:
    return search(
        stepper(logits),
        start(len(limits)),
        bos=BOS,
        eos=EOS,
        pad=PAD,
        limits_B=limits,
        beam=beam,
        penalty=parse_penalty("gnmt:0.6"),
        n_best=beam,
        banned=[UNK],
        constraints=Constraints(constraints, [()] * len(limits), EOS) if constraints else None,
    )


def grams(ids: Sequence[int], size: int) -> list[tuple[int, ...]]:
    return [tuple(ids[i : i + size]) for i in range(len(ids) - size + 1)]


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), beam=st.integers(1, 4), sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_no_n_gram_occurs_twice(seed: int, beam: int, sizes: list[int]) -> None:
    for size, found in zip(
        sizes, run(random_table(seed, FIRST + 3), [14] * len(sizes), beam, NoRepeat(sizes)), strict=True
    ):
        for hypothesis in found:
            assert len(set(grams(hypothesis.ids, size))) == len(grams(hypothesis.ids, size))


@pytest.mark.parametrize("beam", [1, 3])
def test_where_all_words_are_used_up_the_sentence_ends(beam: int) -> None:
    def endless(_: int, prefix: tuple[int, ...]) -> Tensor:
        row = torch.full((FIRST + 2,), -40.0)
        row[FIRST], row[FIRST + 1] = 2.0, 1.0
        return row

    (found,) = run(endless, [9], beam, NoRepeat([1]))
    assert sorted(found[0].ids) == [FIRST, FIRST + 1]  # both orders are as probable
    assert found[0].finished


@given(ids=st.lists(st.integers(4, 7), max_size=12), size=st.integers(0, 4), token=st.integers(4, 7))
def test_a_token_is_ruled_out_exactly_if_it_completes_a_sequence_for_the_second_time(
    ids: list[int], size: int, token: int
) -> None:
    known = grams(ids, size) if size else []
    completes = size > 0 and len(ids) >= size - 1 and tuple([*ids, token][-size:]) in known
    assert (token in repeating(ids, size)) == completes


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), factor=st.sampled_from([1.0, 1.5, 4.0, 0.5]))
def test_the_penalty_multiplies_log_probabilities_of_written_tokens(seed: int, factor: float) -> None:
    logits = random_table(seed, FIRST + 4, 2.0)
    ((best,),) = run(logits, [8], 1, RepetitionPenalty([factor], CPU))
    ids: tuple[int, ...] = ()
    while len(ids) < 8:
        row = logits(0, ids).log_softmax(-1)
        row[[PAD, UNK, BOS]] = -torch.inf
        for token in set(ids):
            row[token] *= factor
        if int(row.argmax()) == EOS:
            break
        ids = (*ids, int(row.argmax()))
    assert best.ids == ids


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), beam=st.integers(1, 4))
def test_neutral_values_and_neighbours_with_others_change_nothing(seed: int, beam: int) -> None:
    logits = random_table(seed, FIRST + 4, 2.0)
    free = run(logits, [9, 9, 9], beam)
    assert run(logits, [9, 9, 9], beam, NoRepeat([0, 2, 0]), RepetitionPenalty([1, 3, 1], CPU))[::2] == free[::2]
    assert run(logits, [9, 9, 9], beam, NoRepeat([0] * 3), RepetitionPenalty([1] * 3, CPU)) == free


def test_translations_repeat_nothing_and_lines_may_differ(random_translator: Translator) -> None:
    lines = sentences(20, 12, seed=3)
    free = list(random_translator.stream(lines))
    strict = list(random_translator.stream(lines, no_repeat_ngram=2))
    assert any(len(set(grams(t.best.tokens, 2))) < len(grams(t.best.tokens, 2)) for t in free)  # type: ignore[arg-type]
    for translation in strict:
        assert len(set(grams(translation.best.tokens, 2))) == len(grams(translation.best.tokens, 2))  # type: ignore[arg-type]
    mixed = [Request(line, settings={"no_repeat_ngram": 2 * (i % 2)}) for i, line in enumerate(lines)]
    found = random_translator.translate(mixed)
    assert found == [(strict if i % 2 else free)[i].text for i in range(20)]
