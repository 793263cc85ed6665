"""What the text of a translation must hold and must not hold, and what is wrong with one that doesn't."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from nmt.search.control.phrases import occurrences
from nmt.search.control.protect import Protector


@dataclass(frozen=True)
class Wishes:
    """Of one translation. Phrases stand in it as whole words, letter for letter."""

    required: tuple[str, ...] = ()
    """A phrase that is named twice must stand there twice."""
    forbidden: tuple[str, ...] = ()
    source: str = ""
    """The text whose protected spans must come through."""
    protector: Protector | None = None

    def __bool__(self) -> bool:
        return bool(self.required or self.forbidden or self.protected())

    def protected(self) -> list[str]:
        """The protected spans of the source."""
        return self.protector.find(self.source) if self.protector else []

    def phrases(self) -> list[str]:
        """All that must stand in the translation, each as often as it must."""
        wanted = Counter(self.required) | Counter(self.protected())
        return list(wanted.elements())

    def problems(self, text: str) -> list[str]:
        """What is wrong with `text`, a clause each."""
        found = [
            f"{phrase!r} is missing" if count == 1 else f"{phrase!r} stands there fewer than {count} times"
            for phrase, count in Counter(self.required).items()
            if occurrences(phrase, text) < count
        ]
        found += [f"{phrase!r} stands there" for phrase in self.forbidden if occurrences(phrase, text)]
        there = Counter(self.protector.find(text)) if self.protector else Counter()
        for span, count in Counter(self.protected()).items():
            if there[span] != count:
                found.append(f"{span!r} stands there {_times(there[span])}, in the source {_times(count)}")
        return found


NO_WISHES = Wishes()


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
