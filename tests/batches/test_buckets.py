"""Batches: every kept pair once, the budget never broken, and the order a function of seed and epoch alone."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.batches.buckets import BatchOrder


def order(source: Any, target: Any, **changes: Any) -> BatchOrder:
    arguments: dict[str, Any] = {
        "batch_tokens": 100,
        "accumulate": 1,
        "max_source_tokens": 50,
        "max_target_tokens": 50,
        "seed": 1,
    }
    return BatchOrder(np.array(source, dtype=np.int32), np.array(target, dtype=np.int32), **{**arguments, **changes})


def batches(updates: list[list[np.ndarray]]) -> list[np.ndarray]:
    return [batch for update in updates for batch in update]


def rows(updates: list[list[np.ndarray]]) -> list[int]:
    return [int(row) for batch in batches(updates) for row in batch]


def plain(updates: list[list[np.ndarray]]) -> list[list[list[int]]]:
    return [[batch.tolist() for batch in update] for update in updates]


def realistic(pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Lengths as captions have them: log-normal, about 14 pieces, the sides alike within a fifth."""
    generator = np.random.default_rng(0)
    source = np.exp(generator.normal(np.log(13.5), 0.36, pairs))
    target = source * np.exp(generator.normal(0, 0.18, pairs))
    return tuple(np.clip(np.round(x), 1, 200).astype(np.int32) for x in (source, target))  # type: ignore[return-value]


PAIRS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=120)


@settings(max_examples=200)
@given(PAIRS, st.integers(1, 200), st.integers(1, 4), st.integers(2, 40), st.integers(2, 40), st.integers(0, 3))
def test_kept_pairs_come_once_within_the_budget(
    pairs: list[tuple[int, int]], budget: int, accumulate: int, most_source: int, most_target: int, epoch: int
) -> None:
    source, target = [s for s, _ in pairs], [t for _, t in pairs]
    made = order(
        source,
        target,
        batch_tokens=budget,
        accumulate=accumulate,
        max_source_tokens=most_source,
        max_target_tokens=most_target,
    )
    updates = made.updates(epoch)
    kept = [
        i for i, (s, t) in enumerate(pairs) if s + 1 <= most_source and t + 1 <= most_target and max(s, t) + 1 <= budget
    ]
    assert sorted(rows(updates)) == kept
    assert made.skipped == len(pairs) - len(kept)
    for batch in batches(updates):
        assert len(batch) * (max(source[i] for i in batch) + 1) <= budget
        assert len(batch) * (max(target[i] for i in batch) + 1) <= budget
    assert all(len(update) == accumulate for update in updates[:-1])
    assert all(1 <= len(update) <= accumulate for update in updates)


def test_limits_count_the_end_mark() -> None:
    limit = 16  # ids without the end mark: 13, 14, 15, 16
    lengths = [limit - 3, limit - 2, limit - 1, limit]
    short = [1] * 4
    for source, target, names in ((lengths, short, "max_source_tokens"), (short, lengths, "max_target_tokens")):
        made = order(source, target, **{names: limit})
        assert sorted(rows(made.updates(0))) == [0, 1, 2] and made.skipped == 1


def test_an_outlier_does_not_break_the_budget_and_one_beyond_it_is_skipped() -> None:
    lengths = [3] * 200 + [399, 1199]
    made = order(lengths, lengths, batch_tokens=1000, max_source_tokens=5000, max_target_tokens=5000)
    assert made.skipped == 1
    assert sorted(rows(made.updates(0))) == list(range(201))
    assert max(len(b) * (max(lengths[i] for i in b) + 1) for b in batches(made.updates(0))) <= 1000


def test_the_order_is_a_function_of_seed_and_epoch() -> None:
    source, target = realistic(500)
    first, second = order(source, target), order(source, target)
    third_epoch = plain(first.updates(3))
    first.updates(0)
    assert third_epoch == plain(first.updates(3)) == plain(second.updates(3))
    assert third_epoch != plain(first.updates(4))
    assert third_epoch != plain(order(source, target, seed=2).updates(3))


def test_epochs_differ_in_batches_and_in_their_order() -> None:
    source, target = realistic(2000)
    made = order(source, target, batch_tokens=500)
    contents = [{frozenset(batch.tolist()) for batch in batches(made.updates(epoch))} for epoch in (0, 1)]
    assert len(contents[0] & contents[1]) < 0.1 * len(contents[0])
    means = [[source[batch].mean() for batch in batches(made.updates(epoch))] for epoch in (0, 1)]
    assert means[0] != sorted(means[0]) and abs(np.corrcoef(np.arange(len(means[0])), means[0])[0, 1]) < 0.5


def test_pairs_of_equal_lengths_do_not_stay_in_the_order_of_the_corpus() -> None:
    lengths = [9] * 1000
    made = order(lengths, lengths)
    for batch in batches(made.updates(0)):
        assert len(batch) == 10 and np.ptp(batch) > 100


def test_pairs_meet_other_pairs_in_the_next_epoch() -> None:
    source, target = realistic(29_000)
    made = order(source, target, batch_tokens=4096, max_source_tokens=256, max_target_tokens=256)
    place = np.zeros(29_000, dtype=int)
    for number, batch in enumerate(batches(made.updates(1))):
        place[batch] = number
    again = [((np.bincount(place[batch]) / len(batch)) ** 2).sum() for batch in batches(made.updates(0))]
    assert np.mean(again) < 0.4  # the chance that two pairs of a batch meet again


@pytest.mark.parametrize("pairs", [3000, 29_000, 200_000])
def test_nine_tenths_of_the_target_cells_are_real(pairs: int) -> None:
    source, target = realistic(pairs)
    made = order(source, target, batch_tokens=4096, max_source_tokens=256, max_target_tokens=256)
    made_batches = batches(made.updates(0))
    real = int(target.sum()) + pairs
    assert real / sum(len(b) * (int(target[b].max()) + 1) for b in made_batches) >= 0.9
    assert (int(source.sum()) + pairs) / sum(len(b) * (int(source[b].max()) + 1) for b in made_batches) >= 0.65
    fullest = [len(b) * (int(max(source[b].max(), target[b].max())) + 1) for b in made_batches]
    assert np.mean(fullest) >= 0.9 * 4096


def test_weights_repeat_pairs_and_take_shares_that_move_on() -> None:
    source = target = np.full(100, 5)
    made = order(source, target, corpora=[(20, 2.0), (40, 0.5), (40, 1.25)])
    counts = [Counter(rows(made.updates(epoch))) for epoch in range(4)]
    for count in counts:
        assert {count[i] for i in range(20)} == {2}
        assert sum(count[i] for i in range(20, 60)) == 20 and {count[i] for i in range(20, 60)} == {0, 1}
        assert sum(count[i] for i in range(60, 100)) == 50 and {count[i] for i in range(60, 100)} == {1, 2}
    assert {(counts[0] + counts[1])[i] for i in range(20, 60)} == {1}
    assert {sum(counts, Counter())[i] for i in range(60, 100)} == {5}
    assert {i for i in range(20, 60) if counts[0][i]} != set(range(20, 40))


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 30), st.floats(0.05, 3)), min_size=1, max_size=4), st.integers(0, 5))
def test_any_weights_give_their_share(corpora: list[tuple[int, float]], epoch: int) -> None:
    total = sum(pairs for pairs, _ in corpora)
    lengths = np.arange(total) % 7
    count = Counter(rows(order(lengths, lengths, corpora=corpora).updates(epoch)))
    start = 0
    for pairs, weight in corpora:
        drawn = sum(count[i] for i in range(start, start + pairs))
        assert abs(drawn - weight * pairs) <= 1
        start += pairs


def test_no_pairs_give_no_updates_and_mistakes_are_refused() -> None:
    assert order([], []).updates(0) == []
    assert order([90], [90]).updates(0) == []
    with pytest.raises(ValueError, match="2 source lengths and 1 target"):
        order([1, 2], [1])
    with pytest.raises(ValueError, match="corpora hold 3 pairs"):
        order([1, 2], [1, 2], corpora=[(3, 1.0)])


def test_lengths_are_not_changed() -> None:
    source, target = realistic(100)
    before = source.copy(), target.copy()
    order(source, target).updates(0)
    assert np.array_equal(source, before[0]) and np.array_equal(target, before[1])
