"""Which lines are shown first."""

from __future__ import annotations

import pytest

from nmt.score.config import ChrfConfig, TerConfig
from nmt.score.marked import plain
from nmt.score.texts import Texts
from nmt.score.worst import Shown, choose

REFERENCE = ["the ship sails at dawn", "it snowed all night", "the harbour is quiet"]
GOOD = ["the ship sails at dawn", "it snowed all day", "the harbour is quiet"]
BAD = ["the ship sails at noon", "it snowed all day", "xyz"]


def rows(shown: Shown) -> dict[str, str]:
    return {name: plain(parts) for name, parts in shown.texts}


@pytest.mark.parametrize("metric", [ChrfConfig(), TerConfig()])
def test_the_worst_lines_come_first_whichever_way_the_metric_points(metric: ChrfConfig | TerConfig) -> None:
    given = Texts(("bad",), (BAD,), ("r",), (REFERENCE,), ["eins", "zwei", "drei"])
    chosen = choose(given, metric.build("en"), 2)
    assert chosen[0].line == 3 and len(chosen) == 2
    assert rows(chosen[0]) == {"source": "drei", "reference": "[-the harbour is quiet-]", "bad": "{+xyz+}"}


def test_of_several_references_the_nearest_is_shown() -> None:
    given = Texts(("a",), (["a ship sails"],), ("r", "s"), (["dogs bark"], ["the ship sails"]))
    (shown,) = choose(given, ChrfConfig().build("en"), 5)
    assert rows(shown) == {"reference": "[-the-] ship sails", "a": "{+a+} ship sails"}


def test_two_systems_are_held_against_each_other_where_they_differ_most() -> None:
    given = Texts(("good", "bad"), (GOOD, BAD), ("r",), (REFERENCE,))
    chosen = choose(given, ChrfConfig().build("en"), 5)
    assert [shown.line for shown in chosen] == [3, 1]  # line 2 is the same in both
    assert rows(chosen[1]) == {
        "reference": "the ship sails at dawn",
        "good": "the ship sails at [-dawn-]",
        "bad": "the ship sails at {+noon+}",
    }
    assert chosen[1].values[0] > chosen[1].values[1]


def test_line_ends_within_a_text_do_not_break_the_lines_shown() -> None:
    given = Texts(("a",), (["one\u2028two"],), ("r",), (["one two"],))
    assert rows(choose(given, ChrfConfig().build("en"), 1)[0])["a"] == "one two"
