"""Minimum Bayes risk: of several translations, the one most like all the others (Kumar & Byrne 2004)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from nmt.score.config import ChrfConfig
from nmt.score.metric import Metric
from nmt.search.translation import Translation


class Consensus:
    """Orders the alternatives of a translation by their mean sentence score against all of them.

    Every alternative counts alike as a reference, and one that was drawn twice counts twice: so the mean estimates
    the expected score where alternatives are samples of the model.
    """

    def __init__(self, metric: Metric | None = None) -> None:
        """`metric` compares two translations: chrF otherwise."""
        self.metric = metric or ChrfConfig().build("")

    def __call__(self, translation: Translation) -> Translation:
        """The same alternatives, the one of least risk first; of equals, the more probable."""
        means = self.means([candidate.text for candidate in translation.alternatives])
        order = sorted(range(len(means)), key=lambda i: (-means[i], -translation.alternatives[i].score))
        return replace(translation, alternatives=tuple(translation.alternatives[i] for i in order))

    def means(self, texts: Sequence[str]) -> list[float]:
        """Each text's mean score against all."""
        counts = Counter(texts)
        mean = {
            text: sum(self.metric.sentence(text, [other]) * count for other, count in counts.items()) / len(texts)
            for text in counts
        }
        return [mean[text] for text in texts]
