"""Collated batches equal a loop over every cell."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.batches.batch import collate, collate_source

MARKS = {"bos": 2, "eos": 3, "pad": 0}
PAIRS = st.lists(
    st.tuples(st.lists(st.integers(4, 99), max_size=9), st.lists(st.integers(4, 99), max_size=9)),
    min_size=1,
    max_size=8,
)


@settings(max_examples=100)
@given(PAIRS, st.sampled_from([np.uint16, np.uint32, None]))
def test_rows_hold_marks_ids_and_padding(pairs: list[tuple[list[int], list[int]]], kind: type | None) -> None:
    source, target = ([np.array(p[i], dtype=kind) if kind else p[i] for p in pairs] for i in (0, 1))
    batch = collate(source, target, **MARKS)
    width_S, width_T = (max(len(p[i]) for p in pairs) + 1 for i in (0, 1))
    assert batch.src_BS.tolist() == [s + [3] + [0] * (width_S - len(s) - 1) for s, _ in pairs]
    assert batch.keep_BS.tolist() == [[i <= len(s) for i in range(width_S)] for s, _ in pairs]
    assert batch.tgt_BT.tolist() == [[2, *t] + [0] * (width_T - len(t) - 1) for _, t in pairs]
    assert batch.out_BT.tolist() == [[*t, 3] + [0] * (width_T - len(t) - 1) for _, t in pairs]
    assert batch.tokens == sum(len(t) + 1 for _, t in pairs) == int((batch.out_BT != 0).sum())
    src_BS, keep_BS = collate_source(source, eos=3, pad=0)
    assert torch.equal(src_BS, batch.src_BS) and torch.equal(keep_BS, batch.keep_BS)


def test_ids_are_int64_and_masks_boolean() -> None:
    batch = collate([[4, 5]], [[6]], **MARKS)
    assert {t.dtype for t in (batch.src_BS, batch.tgt_BT, batch.out_BT)} == {torch.int64}
    assert batch.keep_BS.dtype == torch.bool


def test_text_may_hold_the_number_of_any_mark() -> None:
    batch = collate([[0, 3, 2]], [[0, 0]], **MARKS)
    assert batch.src_BS.tolist() == [[0, 3, 2, 3]] and bool(batch.keep_BS.all())
    assert batch.tgt_BT.tolist() == [[2, 0, 0]] and batch.out_BT.tolist() == [[0, 0, 3]] and batch.tokens == 3


def test_a_batch_moves_to_a_device_whole() -> None:
    batch = collate([[4], [5, 6]], [[7], []], **MARKS)
    moved = batch.to("cpu")
    assert torch.equal(moved.src_BS, batch.src_BS) and moved.tokens == batch.tokens


def test_no_pairs_and_unequal_sides_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        collate([], [], **MARKS)
    with pytest.raises(ValueError, match="1 sources and 2 targets"):
        collate([[4]], [[4], [5]], **MARKS)
