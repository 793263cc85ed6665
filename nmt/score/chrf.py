"""chrF (Popović 2015) and, with word n-grams, chrF++ (Popović 2017), sacrebleu's implementation."""

from __future__ import annotations

from typing import Any

from sacrebleu.metrics.chrf import CHRF

from nmt.score.metric import Metric


class Chrf(Metric):
    """F-score of character n-grams, and of word n-grams up to `word_order`."""

    def __init__(self, word_order: int, lowercase: bool) -> None:
        metric = CHRF(word_order=word_order, lowercase=lowercase)
        super().__init__(metric, metric)

    def details(self, result: Any) -> dict[str, Any]:
        """Longest n-grams and the weight of recall."""
        return {"character_order": result.char_order, "word_order": result.word_order, "beta": result.beta}
