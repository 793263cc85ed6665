"""F-scores of words by how often training has seen them."""

from __future__ import annotations

import pytest

from nmt.score.config import BleuConfig
from nmt.score.frequency import FrequencyGroup, by_frequency
from nmt.score.texts import Texts

TRAINING = ["the ship sails"] * 6 + ["the dog barks", "the dog sleeps"] + ["a cat"]


def groups(hypotheses: list[str], references: list[list[str]]) -> dict[str, FrequencyGroup]:
    given = Texts(("a",), (hypotheses,), tuple("r" * len(references)), tuple(references))
    return {group.name: group for group in by_frequency(given, TRAINING, str.split)}


def test_words_count_in_the_group_of_their_frequency() -> None:
    found = groups(["the ship barks barks", "zebra cat"], [["the dog barks", "zebra sails"]])
    assert {name: (g.words[0].written, g.words[0].wanted, g.words[0].both) for name, g in found.items()} == {
        "0": (1, 1, 1),  # zebra
        "1": (3, 1, 1),  # barks twice, cat; only one barks is wanted
        "2": (0, 1, 0),  # dog
        "5-9": (2, 2, 1),  # the, ship; the, sails
    }


def test_precision_recall_and_f1_are_in_percent() -> None:
    score = groups(["the ship barks barks", "zebra cat"], [["the dog barks", "zebra sails"]])["1"].words[0]
    assert score.precision == pytest.approx(100 / 3)
    assert score.recall == pytest.approx(100)
    assert score.f1 == pytest.approx(50)


def test_words_match_within_their_own_line_only() -> None:
    found = groups(["cat", "dog"], [["dog", "cat"]])
    assert all(group.words[0].both == 0 and group.words[0].f1 == 0 for group in found.values())


def test_of_several_references_the_first_that_is_not_blank_counts() -> None:
    found = groups(["cat", "dog"], [["", "dog"], ["cat", "cat"]])
    assert [group.words[0].f1 for group in found.values()] == [100, 100]


def test_words_are_those_that_bleu_counts() -> None:
    words = BleuConfig(lowercase=True).build("de").words("Das Schiff, sagt er, fährt.")  # type: ignore[attr-defined]
    assert words == ["das", "schiff", ",", "sagt", "er", ",", "fährt", "."]
