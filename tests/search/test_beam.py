"""Search against brute force, over tables of invented probabilities."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from search.tables import BOS, EOS, FIRST, PAD, UNK, scripted, start, stepper
from torch import Tensor

from nmt.model import compiling
from nmt.search.batching import close_ranks
from nmt.search.beam import Beams, beam_search, search
from nmt.search.hypothesis import Hypothesis
from nmt.search.length import Penalty, parse_penalty
from nmt.search.quick import QuickBeams

PENALTIES = ["none", "gnmt:0.6", "gnmt:2", "average:1", "average:0.4", "average:-0.5", "gnmt:-1", "average:3"]
Logits = Callable[[int, tuple[int, ...]], Tensor]


def run(
    logits: Logits, limits: Sequence[int], beam: int, penalty: str, n_best: int = 1, patience: float = 1.0
) -> list[list[Hypothesis]]:
    return search(
        stepper(logits),
        start(len(limits)),
        bos=BOS,
        eos=EOS,
        pad=PAD,
        limits_B=limits,
        beam=beam,
        penalty=parse_penalty(penalty),
        n_best=n_best,
        patience=patience,
        banned=[UNK],
    )


def random_table(seed: int, size: int, sharpness: float = 1.0) -> Logits:
    """Logits drawn for every sentence and prefix."""

    def logits(sentence: int, prefix: tuple[int, ...]) -> Tensor:
        generator = torch.Generator().manual_seed(hash((seed, sentence, prefix)) % 2**31)
        return torch.randn(size, generator=generator) * sharpness

    return logits


def every_sequence(logits: Logits, sentence: int, limit: int, size: int) -> list[tuple[tuple[int, ...], float]]:
    """All sequences of at most `limit` tokens with their log-probabilities, end mark counted."""
    found = []
    for length in range(limit + 1):
        for ids in itertools.product(range(FIRST, size), repeat=length):
            total = 0.0
            for t, token in enumerate((*ids, EOS)):
                total += float(logits(sentence, ids[:t]).double().log_softmax(-1)[token])
            found.append((ids, total))
    return found


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    words=st.integers(1, 3),
    limits=st.lists(st.integers(0, 3), min_size=1, max_size=3),
    penalty=st.sampled_from(PENALTIES),
    sharpness=st.sampled_from([0.3, 1.0, 4.0]),
    n_best=st.integers(1, 5),
)
def test_a_beam_that_covers_the_space_finds_what_brute_force_finds(
    seed: int, words: int, limits: list[int], penalty: str, sharpness: float, n_best: int
) -> None:
    logits, size, form = random_table(seed, FIRST + words, sharpness), FIRST + words, parse_penalty(penalty)
    beam = sum(words**length for length in range(max(limits) + 1))
    beam, n_best = max(beam, n_best, 2), min(n_best, max(beam, 2))
    found = run(logits, limits, beam, penalty, n_best)
    for sentence, limit in enumerate(limits):
        ranked = sorted(
            ((form.score(total, len(ids) + 1), ids) for ids, total in every_sequence(logits, sentence, limit, size)),
            reverse=True,
        )[:n_best]
        assert [h.ids for h in found[sentence]] == [ids for _, ids in ranked]
        assert [h.score for h in found[sentence]] == pytest.approx([score for score, _ in ranked], abs=1e-4)


def by_the_rule(logits: Logits, limit: int, beam: int, form: Penalty, patience: float = 1) -> list[tuple[int, ...]]:
    """All that ends, best first, with the rule of the beam written out for one sentence."""
    live, ended = [((), 0.0)], []
    for length in range(limit + 1):
        rows = [(ids, total, logits(0, ids).log_softmax(-1).tolist()) for ids, total in live]
        if length == limit:
            ended += [(form.score(total + row[EOS], length + 1), ids) for ids, total, row in rows]
            break
        candidates = sorted(
            ((total + row[token], ids, token) for ids, total, row in rows for token in range(EOS, len(row))),
            reverse=True,
        )
        ended += [(form.score(total, length + 1), ids) for total, ids, token in candidates[:beam] if token == EOS]
        live = [((*ids, token), total) for total, ids, token in candidates if token != EOS][:beam]
        if len(ended) >= beam * patience:
            break
    return [ids for _, ids in sorted(ended, reverse=True)]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    beam=st.integers(1, 5),
    penalty=st.sampled_from(PENALTIES),
    size=st.sampled_from([7, 30, 192, 1400]),  # without groups of columns, and with them
    patience=st.sampled_from([1, 1, 1.5, 2, 1000]),
)
def test_search_is_the_rule_written_out(seed: int, beam: int, penalty: str, size: int, patience: float) -> None:
    logits, form, n_best = random_table(seed, size, 2.0), parse_penalty(penalty), max(beam // 2, 1)
    patience = patience if beam > 1 else 1  # greedy search has none
    (found,) = run(logits, [6], beam, penalty, n_best, patience)
    assert [h.ids for h in found] == by_the_rule(logits, 6, beam, form, patience)[:n_best]


def test_with_patience_a_long_ending_wins_though_others_ended_before() -> None:
    def logits(_: int, prefix: tuple[int, ...]) -> Tensor:
        """4 ends at once, with -1.5 in all; 5 6 may end with -3.5; 5 6 7 7 7 ends with -2.8."""
        row = torch.full((8,), -torch.inf)
        if prefix in {(), (4,), (5,), (5, 6, 7), (5, 6, 7, 7)}:
            row[{(): 4, (4,): EOS, (5,): 6}.get(prefix, 7)] = -1.5 if not prefix else 0.0
        if not prefix:
            row[5] = -2.1
        elif prefix == (5, 6):
            row[EOS], row[7] = -1.4, -0.7
        elif prefix == (5, 6, 7, 7, 7):
            row[EOS] = 0.0
        rest = 1 - float(row.exp().sum())
        row[UNK] = math.log(rest) if rest > 1e-6 else -torch.inf
        return row

    assert run(logits, [9], 2, "average:1")[0][0].ids == (4,)
    (best,) = run(logits, [9], 2, "average:1", patience=1000)[0]
    assert best.ids == (5, 6, 7, 7, 7)
    assert best.score == pytest.approx(-2.8 / 6, abs=1e-3)


@pytest.mark.parametrize("count", [1, 3, 8])
def test_ranks_close_with_few_moves(count: int) -> None:
    for staying in itertools.product([True, False], repeat=count):
        places = close_ranks(staying)
        assert sorted(places) == [place for place, stays in enumerate(staying) if stays]
        assert all(place == i or place >= len(places) for i, place in enumerate(places))


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), beam=st.integers(2, 6), penalty=st.sampled_from(PENALTIES))
def test_stopping_early_never_changes_the_result(seed: int, beam: int, penalty: str) -> None:
    class Endless(Penalty):
        """Always hopes for more, so that search ends only when nothing is left."""

        def best(self, log_probability: Tensor, shortest: object, longest: object) -> Tensor:
            return log_probability + 1e6

    limits, logits, form = [7, 3, 6], random_table(seed, 9), parse_penalty(penalty)
    arguments = {"bos": BOS, "eos": EOS, "pad": PAD, "limits_B": limits, "beam": beam, "banned": [UNK]}
    eager = search(stepper(logits), start(3), penalty=form, n_best=2, **arguments)
    patient = search(stepper(logits), start(3), penalty=Endless(form.offset, form.exponent), n_best=2, **arguments)
    assert [[h.ids for h in hypotheses] for hypotheses in eager] == [[h.ids for h in found] for found in patient]


@pytest.mark.parametrize(
    ("penalty", "winner", "score"),
    [
        ("average:0", "A", -2.0),
        ("none", "A", -2.0),
        ("average:1", "B", -0.675),
        ("gnmt:0.6", "A", -1.823),
        ("gnmt:1", "A", -1.714),
        ("gnmt:2", "B", -1.2),
        ("average:-0.5", "A", -2.828),
    ],
)
def test_a_short_and_a_long_ending_are_weighed_by_the_named_formula(penalty: str, winner: str, score: float) -> None:
    paths = {"A": (4, EOS), "B": (5, 6, 7, EOS)}
    (best,) = run(scripted({paths["A"]: -2.0, paths["B"]: -2.7}, 8), [10], 2, penalty)[0]
    assert (*best.ids, EOS) == paths[winner]
    assert best.score == pytest.approx(score, abs=5e-4)
    assert best.finished


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), limits=st.lists(st.integers(0, 12), min_size=1, max_size=6))
def test_a_beam_of_one_is_the_chain_of_most_probable_tokens(seed: int, limits: list[int]) -> None:
    logits = random_table(seed, 12, 2.0)
    for sentence, (best,) in enumerate(run(logits, limits, 1, "gnmt:0.6")):
        chain: tuple[int, ...] = ()
        while len(chain) < limits[sentence]:
            row = logits(sentence, chain)
            row[[PAD, UNK, BOS]] = -torch.inf
            if int(row.argmax()) == EOS:
                break
            chain = (*chain, int(row.argmax()))
        assert best.ids == chain


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), limits=st.lists(st.integers(0, 12), min_size=1, max_size=6))
def test_greedy_search_is_beam_search_with_one_place(seed: int, limits: list[int]) -> None:
    logits, penalty = random_table(seed, 12, 2.0), parse_penalty("average:1")
    beams = Beams(limits, 1, 1, EOS, penalty, torch.device("cpu"))
    wide = beam_search(stepper(logits), start(len(limits)), beams, BOS, [PAD, UNK, BOS])
    for (ours,), (theirs,) in zip(run(logits, limits, 1, "average:1"), wide, strict=True):
        assert (ours.ids, ours.finished) == (theirs.ids, theirs.finished)
        assert ours.score == pytest.approx(theirs.score, abs=1e-5)
        assert ours.token_log_probabilities == pytest.approx(theirs.token_log_probabilities, abs=1e-6)


@pytest.mark.skipif(not compiling.AVAILABLE, reason="loops cannot be compiled here")
@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    size=st.sampled_from([6, 12, 140]),
    sharpness=st.sampled_from([0.5, 4.0]),
    limits=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    beam=st.integers(1, 5),
    penalty=st.sampled_from(PENALTIES),
    patience=st.sampled_from([1.0, 1.5, 1000.0]),
)
def test_the_compiled_search_finds_what_torchs_operations_find(
    seed: int, size: int, sharpness: float, limits: list[int], beam: int, penalty: str, patience: float
) -> None:
    logits, form, n_best = random_table(seed, size, sharpness), parse_penalty(penalty), (beam + 1) // 2
    plain = Beams(limits, beam, n_best, EOS, form, torch.device("cpu"), patience)
    quick = QuickBeams(limits, beam, n_best, EOS, form, patience)
    expected, found = (
        beam_search(stepper(logits), start(len(limits)), beams, BOS, [PAD, UNK, BOS]) for beams in (plain, quick)
    )
    for ours, theirs in zip(found, expected, strict=True):
        assert [(h.ids, h.finished, h.log_probability) for h in ours] == [
            (h.ids, h.finished, h.log_probability) for h in theirs
        ]
        assert [h.token_log_probabilities for h in ours] == [h.token_log_probabilities for h in theirs]
        assert [h.score for h in ours] == pytest.approx([h.score for h in theirs], rel=1e-6)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), beam=st.integers(2, 8), penalty=st.sampled_from(PENALTIES))
def test_n_best_lists_are_full_distinct_sorted_and_add_up(seed: int, beam: int, penalty: str) -> None:
    limits, form = [6, 2, 9, 4], parse_penalty(penalty)
    logits = random_table(seed, 140, 0.5)
    for sentence, found in enumerate(run(logits, limits, beam, penalty, beam)):
        assert len(found) == beam
        assert len({h.ids for h in found}) == beam
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
        for h in found:
            assert len(h.ids) <= limits[sentence]
            assert len(h.token_log_probabilities) == len(h.ids) + 1
            assert math.fsum(h.token_log_probabilities) == pytest.approx(h.log_probability, abs=1e-4)
            assert h.score == pytest.approx(form.score(h.log_probability, len(h.ids) + 1), abs=1e-4)
            assert not {PAD, UNK, BOS, EOS} & set(h.ids)


def test_the_first_of_many_is_the_one_of_one() -> None:
    logits = random_table(3, 50)
    alone, many = run(logits, [8] * 5, 6, "gnmt:0.6"), run(logits, [8] * 5, 6, "gnmt:0.6", 6)
    assert [found[0] for found in alone] == [found[0] for found in many]


def test_what_runs_into_the_limit_is_returned_and_marked_as_cut() -> None:
    def never_ends(_: int, prefix: tuple[int, ...]) -> Tensor:
        row = torch.zeros(8)
        row[EOS], row[4] = -20.0, 5.0
        return row

    for beam in (1, 3):
        for limit, found in zip([4, 0, 7], run(never_ends, [4, 0, 7], beam, "average:1"), strict=True):
            assert found[0].ids == (4,) * limit
            assert not found[0].finished


def test_an_end_at_the_limit_that_the_model_wants_is_no_cut() -> None:
    (best,) = run(scripted({(5, 6, EOS): -0.1}, 8), [2], 2, "none")[0]
    assert best.ids == (5, 6)
    assert best.finished


def test_impossible_continuations_leave_the_list_shorter_but_never_empty() -> None:
    (found,) = run(scripted({(5, EOS): -0.5, (6, EOS): -1.5}, 8), [1], 4, "none", 4)
    assert {h.ids for h in found[:2]} == {(5,), (6,)}
    assert 1 <= len(found) <= 4


@pytest.mark.parametrize("beam", [1, 4])
def test_sentences_do_not_know_their_neighbours(beam: int) -> None:
    limits = [3, 11, 0, 7, 5, 9]
    together = run(random_table(8, 30), limits, beam, "gnmt:0.6")
    for sentence, limit in enumerate(limits):
        table = random_table(8, 30)
        alone = run(lambda _, prefix, n=sentence, t=table: t(n, prefix), [limit], beam, "gnmt:0.6")
        assert alone == [together[sentence]]


def test_no_sentences_give_no_hypotheses() -> None:
    assert run(random_table(1, 8), [], 4, "none") == []


def test_more_hypotheses_than_places_are_refused() -> None:
    with pytest.raises(ValueError, match="n_best = 5"):
        run(random_table(1, 8), [3], 4, "none", 5)
