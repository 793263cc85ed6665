"""Minimum Bayes risk among given translations."""

from __future__ import annotations

import pytest

from nmt.score.config import ChrfConfig
from nmt.score.mbr import Consensus
from nmt.search.translation import Candidate, Translation


def of(texts: list[str], scores: list[float]) -> Translation:
    return Translation(0, "x", tuple(Candidate(t, s, s) for t, s in zip(texts, scores, strict=True)))


def test_the_translation_most_like_the_others_comes_first() -> None:
    texts = ["nothing of the kind", "a dog runs in the park", "a dog runs in a park", "the dog runs in the park"]
    ordered = Consensus()(of(texts, [-1.0, -2.0, -3.0, -4.0]))
    assert ordered.text == "a dog runs in the park"
    assert {c.text for c in ordered.alternatives} == set(texts)
    assert ordered.alternatives[-1].text == "nothing of the kind"


def test_what_was_drawn_twice_counts_twice_and_means_are_plain_averages() -> None:
    texts = ["ab cd", "ab cd", "xy"]
    metric = ChrfConfig().build("")
    expected = [sum(metric.sentence(text, [other]) for other in texts) / 3 for text in texts]
    assert Consensus().means(texts) == pytest.approx(expected)


def test_equals_keep_the_models_order_and_one_alone_stays() -> None:
    assert Consensus()(of(["b", "a"], [-2.0, -1.0])).text == "a"
    assert Consensus()(of([""], [0.0])).text == ""
