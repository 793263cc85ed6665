"""Epochs of very many pairs are planned in groups: nothing is lost, nothing comes twice, each group stands alone."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.batches import kept as kept_module
from nmt.batches.ahead import Ahead
from nmt.batches.buckets import BatchOrder
from nmt.batches.kept import Kept
from nmt.batches.shuffle import Shuffle


def order(lengths: Any, **changes: Any) -> BatchOrder:
    arguments: dict[str, Any] = {"batch_tokens": 60, "accumulate": 2, "max_source_tokens": 30, "max_target_tokens": 30}
    lengths = np.asarray(lengths, dtype=np.int32)
    return BatchOrder(lengths, lengths[::-1], **{**arguments, "seed": 1, **changes})


def counted(made: BatchOrder, epoch: int, group: int | None = None) -> Counter[int]:
    updates = made.updates(epoch) if group is None else made.group(epoch, group)
    return Counter(int(row) for update in updates for batch in update for row in batch)


def plain(updates: list[list[np.ndarray]]) -> list[list[list[int]]]:
    return [[batch.tolist() for batch in update] for update in updates]


LENGTHS = st.lists(st.integers(0, 35), min_size=1, max_size=150)


@settings(max_examples=100)
@given(LENGTHS, st.integers(1, 40), st.integers(0, 3), st.integers(0, 5))
def test_every_kept_pair_comes_once_in_one_of_the_groups(lengths: list[int], most: int, epoch: int, seed: int) -> None:
    made = order(lengths, group=most, seed=seed)
    fits = [i for i, (a, b) in enumerate(zip(lengths, lengths[::-1], strict=True)) if max(a, b) + 1 <= 30]
    assert made.skipped == len(lengths) - len(fits)
    assert made.groups == (1 if not fits else -(-len(fits) // most))
    assert made.whole == (len(fits) <= most)
    groups = [counted(made, epoch, group) for group in range(made.groups)]
    assert sorted(sum(groups, Counter()).elements()) == fits
    assert max(group.total() for group in groups) - min(group.total() for group in groups) <= 1
    for update in made.updates(epoch):
        for batch in update:
            assert len(batch) * max(max(lengths[i], lengths[-1 - i]) + 1 for i in batch) <= 60


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.floats(0.05, 3)), min_size=1, max_size=4),
    st.integers(1, 30),
    st.integers(0, 5),
)
def test_corpora_have_their_share_of_every_epoch(corpora: list[tuple[int, float]], most: int, epoch: int) -> None:
    lengths = [row % 33 for row in range(sum(pairs for pairs, _ in corpora))]  # some do not fit
    count = counted(order(lengths, corpora=corpora, group=most), epoch)
    start = 0
    for pairs, weight in corpora:
        fits = [i for i in range(start, start + pairs) if max(lengths[i], lengths[-1 - i]) < 30]
        assert abs(sum(count[i] for i in fits) - weight * len(fits)) <= 1
        assert all(int(weight) <= count[i] <= int(weight) + 1 for i in fits)
        start += pairs


def test_a_share_moves_on_until_all_have_come() -> None:
    made = order([5] * 100, corpora=[(60, 0.25), (40, 1.5)], group=20)
    counts = [counted(made, epoch) for epoch in range(4)]
    assert not made.whole and made.groups == 4
    total = sum(counts, Counter())
    assert {total[i] for i in range(60)} == {1} and {total[i] for i in range(60, 100)} == {6}


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(1, 20), st.floats(1e-4, 0.06)), min_size=1, max_size=3),
    st.integers(1, 40),
    st.integers(0, 30),
)
def test_no_epoch_is_empty_however_small_the_weights_are(
    corpora: list[tuple[int, float]], most: int, epoch: int
) -> None:
    made = order([5] * sum(pairs for pairs, _ in corpora), corpora=corpora, group=most)
    count = counted(made, epoch)
    shares = [(round(epoch * weight * pairs), round((epoch + 1) * weight * pairs)) for pairs, weight in corpora]
    if made.groups == 1:
        assert count.total() == max(1, sum(end - start for start, end in shares))
    assert count == counted(made, epoch)


def test_an_epoch_of_one_pair_is_of_the_corpus_that_is_next_to_have_one() -> None:
    made = order([5] * 40, corpora=[(20, 0.004), (20, 0.02)])
    assert all(sum(counted(made, epoch)[row] for row in range(20, 40)) == 1 for epoch in range(4))


def test_a_group_is_a_function_of_its_number_alone_and_random() -> None:
    lengths = np.random.default_rng(0).integers(1, 20, 1000)
    made, again = order(lengths, group=300), order(lengths, group=300)
    assert plain(made.group(2, 3)) == plain(again.group(2, 3)) == plain(made.updates(2))[-len(again.group(2, 3)) :]
    rows = np.array(list(counted(made, 0, 1)))
    assert 400 < rows.mean() < 600 and np.bincount(rows // 100, minlength=10).min() > 10
    assert len(counted(made, 0, 1) & counted(made, 1, 1)) < 120  # 62 would be by chance


def test_pairs_that_are_one_group_are_planned_as_ever() -> None:
    """Runs of earlier versions go on: the digest is that of their order."""
    generator = np.random.default_rng(7)
    source = generator.integers(0, 40, 700).astype(np.int32)
    limits: dict[str, Any] = {"batch_tokens": 300, "accumulate": 2, "max_source_tokens": 38, "max_target_tokens": 30}
    made = BatchOrder(source, source[::-1], **limits, seed=3, corpora=[(300, 2.0), (200, 0.3), (200, 1.5)])
    digest = hashlib.sha256(json.dumps([plain(made.updates(epoch)) for epoch in range(3)]).encode())
    assert made.whole and digest.hexdigest()[:16] == "6ff562a2560140d3"


@settings(max_examples=60)
@given(st.integers(0, 2000), st.integers(0, 9))
def test_a_shuffle_brings_every_number_once_and_any_part_alone(count: int, seed: int) -> None:
    shuffle = Shuffle(count, np.random.default_rng(seed))
    whole = shuffle.take(np.arange(count))
    assert sorted(whole.tolist()) == list(range(count))
    assert np.array_equal(shuffle.take(np.arange(count // 3, count // 2)), whole[count // 3 : count // 2])


def test_a_shuffle_is_as_random_as_one_that_holds_all_numbers() -> None:
    whole = Shuffle(90_000, np.random.default_rng(1)).take(np.arange(90_000))
    assert abs(np.corrcoef(whole[:-1], whole[1:])[0, 1]) < 0.02
    assert 0.3 < (np.diff(whole) > 0).mean() < 0.7
    cells = np.histogram2d(np.arange(90_000), whole, bins=30)[0]  # 100 expected in each of 900 cells
    assert 700 < ((cells - 100) ** 2 / 100).sum() < 1100


@pytest.mark.parametrize("count", [0, 1, 7, 64, 100, 333])
def test_kept_rows_are_found_by_their_number(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_module, "_BLOCK", 64)
    keep = np.random.default_rng(count).random(count) < 0.6
    kept, rows = Kept(count, lambda start, end: keep[start:end]), np.flatnonzero(keep)
    assert len(kept) == len(rows)
    assert kept.rows(np.arange(len(rows))).tolist() == rows.tolist()
    assert kept.rows(np.arange(0, len(rows), 5)).tolist() == rows[::5].tolist()
    assert [kept.before(row) for row in range(count + 1)] == [int(keep[:row].sum()) for row in range(count + 1)]


def test_the_next_group_is_planned_while_the_present_one_is_used() -> None:
    planned, on = [], threading.Event()

    def make(epoch: int, group: int) -> list[list[np.ndarray]]:
        planned.append((epoch, group, threading.current_thread() is threading.main_thread()))
        on.set()
        return [[np.array([epoch, group])]]

    ahead = Ahead(make, lambda place: (place[0], place[1] + 1))
    assert ahead.take((0, 5))[0][0].tolist() == [0, 5]
    assert on.wait(10)
    assert ahead.take((0, 6))[0][0].tolist() == [0, 6]
    assert ahead.take((0, 6))[0][0].tolist() == [0, 6]
    assert planned[:2] == [(0, 5, True), (0, 6, False)]
    assert [place[:2] for place in planned].count((0, 6)) == 1


def test_what_goes_wrong_in_planning_ahead_is_told_when_it_is_needed() -> None:
    def make(epoch: int, group: int) -> list[list[np.ndarray]]:
        if group:
            raise MemoryError("no room")
        return []

    ahead = Ahead(make, lambda place: (place[0], place[1] + 1))
    assert ahead.take((0, 0)) == []
    with pytest.raises(MemoryError, match="no room"):
        ahead.take((0, 1))
