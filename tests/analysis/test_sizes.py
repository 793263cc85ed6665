"""Charts of lengths and of pieces, against counts made one by one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from nmt.analysis.sizes import coverage_curve, length_curve, sizes
from nmt.batches.shards import Shard, write_shard

SENTENCES = [[4, 5, 4], [4], [6, 4], [5, 4, 4, 7], [4]]


def test_counts_are_those_of_reading_one_by_one(tmp_path: Path) -> None:
    write_shard(tmp_path / "s", SENTENCES, 9)
    found = Counter(i for sentence in SENTENCES for i in sentence)
    assert Shard.open(tmp_path / "s").counts().tolist() == [found[i] for i in range(9)]
    write_shard(tmp_path / "none", [], 9)
    assert not Shard.open(tmp_path / "none").counts().any()


def test_lengths_are_shares_of_all_sentences() -> None:
    curve = length_curve(np.array([len(sentence) for sentence in SENTENCES] * 100, np.int32))
    assert curve == [(0, 0), (1, 40), (2, 20), (3, 20), (4, 20)]


def test_coverage_rises_from_the_commonest_piece_to_all() -> None:
    curve = coverage_curve(np.array([0, 0, 7, 1, 2]))
    assert curve == [(0, 0), (1, pytest.approx(70)), (2, pytest.approx(90)), (3, pytest.approx(100))]
    assert coverage_curve(np.zeros(3, np.int64)) == [(0, 0)]


def test_a_run_has_both_charts_and_one_that_has_only_begun_none(tmp_path: Path) -> None:
    assert not sizes(tmp_path)
    (tmp_path / "shards").mkdir()
    for side in ("source", "target"):
        write_shard(tmp_path / "shards" / f"train.{side}", SENTENCES, 9)
    html = sizes(tmp_path)
    assert html.count("<figure>") == 2 and "n = 5 pairs" in html and "n = 22)" in html
    (tmp_path / "shards" / "train.source").write_bytes(b"cut")
    assert not sizes(tmp_path)
