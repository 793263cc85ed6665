"""Two files, aligned by line number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from nmt.corpus.lines import read_lines
from nmt.corpus.sources.source import check_counts, unequal


class PlainSource:
    """Line i of `source` and line i of `target` are a pair."""

    def __init__(self, source: Path, target: Path) -> None:
        self.source = source
        self.target = target

    @property
    def name(self) -> str:
        return f"{self.source.name} + {self.target.name}"

    def pairs(self, on_bad_bytes: str = "error", tally: Counter[str] | None = None) -> Iterator[tuple[str, str]]:
        """See `Source.pairs`. Raises DataError with both counts when one side ends before the other."""
        sources = read_lines(self.source, on_bad_bytes, tally)
        targets = read_lines(self.target, on_bad_bytes, tally)
        number = 0
        for source in sources:
            target = next(targets, None)
            if target is None:
                rest = 1 + sum(1 for _ in sources)
                raise unequal(self.source, number + rest, self.target, number)
            yield source, target
            number += 1
        if rest := sum(1 for _ in targets):
            raise unequal(self.source, number, self.target, number + rest)

    def count(self) -> int | None:
        """See `Source.count`."""
        return check_counts((self.source, self.target))
