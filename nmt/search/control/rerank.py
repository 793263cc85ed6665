"""The n best ordered anew by what other models think of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from nmt.errors import SettingsError
from nmt.search.control.markup import plain
from nmt.search.translate import Translator
from nmt.search.translation import Candidate, Translation

Reorder = Callable[[Translation], Translation]


class Rescoring:
    """Adds to each score, with a weight, that of another model for the same text, and puts the best first.

    The models read text, so they may have vocabularies of their own, write from right to left, or translate the other
    way. Scores are length-normalized alike: by `length_penalty`, or by the first model's own.
    """

    def __init__(self, models: Sequence[tuple[Translator, float]], length_penalty: str | None = None) -> None:
        if any(model.context.sentences for model, _ in models):
            raise SettingsError(
                "a model that reads context cannot order translations, of which it does not know what stood before",
                "take a model of single sentences",
            )
        self.models, self.length_penalty = models, length_penalty

    def __call__(self, translation: Translation) -> Translation:
        """The same alternatives; `features` of each tells the other models' scores."""
        read = plain if translation.markup else str
        texts = [read(candidate.text) for candidate in translation.alternatives]
        candidates = list(translation.alternatives)
        for number, (model, weight) in enumerate(self.models):
            sources = [read(translation.source)] * len(texts)
            tag = translation.tag if model.source_vocabulary.tags else ""  # a model without tags is asked for none
            scored = model.rescore(sources, texts, tag=tag, length_penalty=self.length_penalty)
            pairs = zip(candidates, scored, strict=True)
            candidates = [_added(one, f"Rescore{number}", other.score, weight) for one, other in pairs]
        candidates.sort(key=lambda candidate: -candidate.score)
        return replace(translation, alternatives=tuple(candidates))


def _added(candidate: Candidate, name: str, score: float, weight: float) -> Candidate:
    return replace(candidate, score=candidate.score + weight * score, features=(*candidate.features, (name, score)))


def in_turn(*steps: Reorder) -> Reorder:
    """One after the other."""

    def all_of_them(translation: Translation) -> Translation:
        for step in steps:
            translation = step(translation)
        return translation

    return all_of_them
