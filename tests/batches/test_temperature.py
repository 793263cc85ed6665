"""Corpora by temperature: shares of n^(1/T), an epoch as long as before, exact counts, and the same in every run."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.batches.buckets import BatchOrder
from nmt.batches.temperature import tempered

CORPORA = st.lists(st.tuples(st.integers(1, 10**7), st.floats(0.1, 9)), min_size=1, max_size=6)


@given(corpora=CORPORA, temperature=st.floats(1, 100))
def test_shares_are_the_sizes_to_the_power_of_one_over_t(corpora: list[tuple[int, float]], temperature: float) -> None:
    found = tempered(corpora, temperature)
    sizes = np.array([pairs * weight for pairs, weight in corpora])
    counts = np.array([pairs * weight for pairs, weight in found])
    powers = np.exp(np.log(sizes) / temperature)
    assert np.allclose(counts / counts.sum(), powers / powers.sum())
    assert counts.sum() == pytest.approx(sizes.sum())


@given(corpora=CORPORA)
def test_a_temperature_of_one_changes_nothing_at_all(corpora: list[tuple[int, float]]) -> None:
    assert tempered(corpora, 1.0) == corpora


def test_one_corpus_or_corpora_of_one_size_stay_as_they_are() -> None:
    assert tempered([(70, 1.5)], 5)[0] == (70, pytest.approx(1.5))
    assert [weight for _, weight in tempered([(40, 1.0), (20, 2.0)], 3)] == pytest.approx([1.0, 2.0])


def test_corpora_of_a_group_are_one_corpus() -> None:
    apart = tempered([(300, 1.0), (100, 1.0), (25, 1.0)], 2, ["de", "de", "fr"])
    whole = tempered([(400, 1.0), (25, 1.0)], 2)
    assert apart[0][1] == apart[1][1] == pytest.approx(whole[0][1])
    assert apart[2][1] == pytest.approx(whole[1][1])
    assert 400 * whole[0][1] == pytest.approx(4 * 25 * whole[1][1])  # √400 : √25


def test_what_is_empty_stays_empty() -> None:
    assert tempered([(0, 1.0), (9, 1.0)], 5)[0][0] == 0


@pytest.mark.parametrize("temperature", [1.0, 2.0, 5.0, 50.0])
def test_every_epoch_brings_these_counts_to_a_pair_and_every_pair_alike(temperature: float) -> None:
    sizes = [(900, 1.0), (60, 1.0), (7, 2.0)]
    corpora = tempered(sizes, temperature)
    lengths = np.random.default_rng(1).integers(1, 20, 967)

    def order() -> BatchOrder:
        limits = {"batch_tokens": 200, "accumulate": 2, "max_source_tokens": 50, "max_target_tokens": 50}
        return BatchOrder(lengths, lengths, **limits, seed=7, corpora=corpora)

    total: Counter[int] = Counter()
    for epoch in range(6):
        updates = order().updates(epoch)
        again = order().updates(epoch)
        assert all(np.array_equal(a, b) for u, v in zip(updates, again, strict=True) for a, b in zip(u, v, strict=True))
        rows = np.concatenate([batch for update in updates for batch in update])
        total.update(rows.tolist())
        for (pairs, weight), start in zip(corpora, (0, 900, 960), strict=True):
            count = int(((rows >= start) & (rows < start + pairs)).sum())
            assert abs(count - pairs * weight) <= 1
    for (pairs, weight), start in zip(corpora, (0, 900, 960), strict=True):
        seen = [total[row] for row in range(start, start + pairs)]
        assert max(seen) - min(seen) <= 1
        assert abs(sum(seen) - 6 * pairs * weight) <= 1
