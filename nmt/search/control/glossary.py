"""A glossary: which terms of the source must be translated how."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nmt.corpus.lines import is_blank, read_lines
from nmt.errors import DataError
from nmt.search.control.phrases import is_whole


class Glossary:
    """Pairs of a source term and the target term that must stand in the translation, letter for letter."""

    def __init__(self, terms: Iterable[tuple[str, str]]) -> None:
        self.target = dict(terms)
        self._by_letter: dict[str, list[str]] = {}
        for term in sorted(self.target, key=len, reverse=True):
            self._by_letter.setdefault(term[0], []).append(term)

    @classmethod
    def read(cls, path: Path | str) -> Glossary:
        """From a file of lines SOURCE TAB TARGET. Raises DataError naming the line that is none, or contradicts."""
        terms: dict[str, str] = {}
        for number, line in enumerate(read_lines(path), 1):
            if is_blank(line):
                continue
            source, *targets = (side.strip() for side in line.split("\t"))
            if not source or len(targets) != 1 or not targets[0]:
                raise DataError(f"{path}:{number}: is not SOURCE TAB TARGET", "write term, tab, translation")
            if terms.setdefault(source, targets[0]) != targets[0]:
                raise DataError(
                    f"{path}:{number}: {source!r} has two translations, {terms[source]!r} and {targets[0]!r}",
                    "keep one of them",
                )
        return cls(terms.items())

    def wanted(self, source: str) -> list[str]:
        """The target terms whose source terms stand in `source` as whole words: long ones first, none overlapping."""
        found, place = [], 0
        while place < len(source):
            for term in self._by_letter.get(source[place], ()):
                if source.startswith(term, place) and is_whole(source, place, place + len(term)):
                    found.append(self.target[term])
                    place += len(term)
                    break
            else:
                place += 1
        return list(dict.fromkeys(found))
