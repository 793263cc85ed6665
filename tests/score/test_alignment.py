"""The alignment error rate: cases computed by hand, and its laws."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.errors import DataError
from nmt.score.alignment import Gold, alignment_score, read_gold

LINKS = st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 4)))


def gold(sure: set[tuple[int, int]], possible: set[tuple[int, int]] = frozenset()) -> Gold:  # type: ignore[assignment]
    return Gold(frozenset(sure), frozenset(sure | possible))


@pytest.mark.parametrize(
    ("found", "right", "error", "precision", "recall"),
    [
        ({(0, 0), (1, 1)}, gold({(0, 0), (1, 1)}), 0, 1, 1),
        ({(0, 0), (1, 1)}, gold({(0, 0)}, {(1, 1)}), 0, 1, 1),  # 1 - (1 + 2) / (2 + 1)
        ({(0, 0)}, gold({(0, 0)}, {(1, 1)}), 0, 1, 1),  # a possible link may be left out
        ({(0, 0), (1, 2)}, gold({(0, 0), (1, 1)}), 1 / 2, 1 / 2, 1 / 2),  # 1 - (1 + 1) / (2 + 2)
        ({(0, 0), (1, 1), (2, 2)}, gold({(0, 0), (3, 3)}, {(1, 1)}), 2 / 5, 2 / 3, 1 / 2),  # 1 - (1 + 2) / (3 + 2)
        ({(1, 0)}, gold({(0, 1)}), 1, 0, 0),  # the sides are not to be confused
        (set(), gold({(0, 0)}), 1, 1, 0),
        ({(0, 0)}, gold(set()), 1, 0, 1),
    ],
)
def test_the_error_is_as_computed_by_hand(found, right, error, precision, recall) -> None:
    result = alignment_score([found], [right])
    assert (result.error, result.precision, result.recall) == pytest.approx((error, precision, recall))


def test_counts_are_added_up_over_pairs_not_averaged() -> None:
    found = [{(0, 0), (1, 1), (2, 2)}, {(0, 1)}]
    result = alignment_score(found, [gold({(0, 0), (1, 1), (2, 2)}), gold({(0, 0)})])
    assert result.error == pytest.approx(1 - (3 + 3) / (4 + 4))
    assert (result.links, result.sure, result.possible) == (4, 4, 4)


@settings(max_examples=60)
@given(LINKS, LINKS)
def test_with_sure_links_only_it_is_one_less_f1(found, sure) -> None:
    if not found or not sure:
        return
    result = alignment_score([found], [Gold(sure, sure)])
    both = result.precision + result.recall
    f1 = 2 * result.precision * result.recall / both if both else 0.0
    assert result.error == pytest.approx(1 - f1)


def test_nothing_on_either_side_is_no_number() -> None:
    with pytest.raises(DataError, match="nothing to measure"):
        alignment_score([set()], [gold(set(), {(0, 0)})])
    with pytest.raises(DataError, match="1 pair has links, 0"):
        alignment_score([set()], [])


def test_gold_links_are_read_in_both_spellings(tmp_path: Path) -> None:
    path = tmp_path / "gold"
    path.write_text("0-0 1?2 3p1\n\n 2-2\t0-0 \n")
    sizes = [(4, 3), (1, 1), (3, 3)]
    assert read_gold(path, sizes) == [gold({(0, 0)}, {(1, 2), (3, 1)}), gold(set()), gold({(2, 2), (0, 0)})]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0-0\n1-2\n", r"gold:2: '1-2': the target has 2 words, counted from 0"),
        ("0-0\n2?0\n", r"gold:2: '2\?0': the source has 2 words"),
        ("0:0\n0-0\n", r"gold:1: '0:0' is no link"),
        ("0-0\n", r"gold has 1 line for 2 pairs"),
    ],
)
def test_what_is_no_gold_file_is_refused_with_its_place(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "gold"
    path.write_text(text)
    with pytest.raises(DataError, match=problem):
        read_gold(path, [(2, 2), (2, 2)])
