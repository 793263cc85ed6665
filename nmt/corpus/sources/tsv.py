"""One file of tab-separated columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from nmt.corpus.lines import read_lines
from nmt.corpus.sources.source import check_counts
from nmt.errors import DataError


class TsvSource:
    """Two columns of each line are a pair; columns count from 1. Quotes mean nothing."""

    def __init__(self, file: Path, source_column: int = 1, target_column: int = 2) -> None:
        self.file = file
        self.source_column = source_column
        self.target_column = target_column

    @property
    def name(self) -> str:
        return self.file.name

    def pairs(self, on_bad_bytes: str = "error", tally: Counter[str] | None = None) -> Iterator[tuple[str, str]]:
        """See `Source.pairs`. Raises DataError with file and line where a column is missing."""
        last = max(self.source_column, self.target_column)
        for number, line in enumerate(read_lines(self.file, on_bad_bytes, tally), 1):
            columns = line.split("\t")
            if len(columns) < last:
                problem = f"{self.file}:{number}: has {len(columns)} tab-separated columns; column {last} is asked for"
                raise DataError(problem, "set source_column and target_column, or mend the line")
            yield columns[self.source_column - 1], columns[self.target_column - 1]

    def count(self) -> int | None:
        """See `Source.count`."""
        return check_counts((self.file,))
