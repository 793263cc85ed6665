"""What every format of parallel text gives, and a quick look whether it can."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from nmt.corpus.lines import count_lines, read_lines
from nmt.errors import DataError
from nmt.wording import counted

if TYPE_CHECKING:
    from nmt.corpus.config import SourceConfig, TestSetConfig


class Source(Protocol):
    """Aligned raw pairs, read anew each time they are asked for, in constant memory."""

    @property
    def name(self) -> str:
        """What users know it by: its files."""

    def pairs(self, on_bad_bytes: str = "error", tally: Counter[str] | None = None) -> Iterator[tuple[str, str]]:
        """Every (source, target) in order, as `read_lines` reads. Raises DataError, also for sides out of step."""

    def count(self) -> int | None:
        """How many pairs there are, or None where counting would use the data up. Raises DataError."""


def check_source(config: SourceConfig, look: int = 1000) -> list[str]:
    """The problems of a recipe's source, found quickly: missing files, unequal counts, trouble in the first lines."""
    try:
        source = config.build()
        for _ in islice(source.pairs(), look):
            pass
        source.count()
    except DataError as error:
        return [error.problem]
    return []


def check_test_set(config: TestSetConfig, look: int = 1000) -> list[str]:
    """The problems of a test set: missing files, references of another length than the source, bad bytes."""
    try:
        for path in config.files():
            for _ in islice(read_lines(path), look):
                pass
        check_counts(config.files())
    except DataError as error:
        return [error.problem]
    return []


def check_counts(paths: tuple[Path, ...]) -> int | None:
    """The number of lines that all of `paths` have. Raises DataError naming two that differ, and both counts.

    None when one is a pipe, which can be read only once.
    """
    if any(path.exists() and not path.is_file() for path in paths):
        return None
    counts = [count_lines(path) for path in paths]
    for path, count in zip(paths, counts, strict=True):
        if count != counts[0]:
            raise unequal(paths[0], counts[0], path, count)
    return counts[0]


def language_of(path: Path) -> str | None:
    """The language code that a name such as train.en.gz tells, or None."""
    name = re.sub(r"\.(gz|xz|zst|bz2)$", "", path.name)
    match = re.search(r"\.([a-z]{2,3}(?:[-_][A-Za-z]{2,4})?)$", name)
    if match is None or match[1] in {"txt", "tsv", "csv", "tok", "raw", "src", "tgt", "trg", "ref", "bpe"}:
        return None
    return match[1]


def unequal(first: Path, first_count: int, second: Path, second_count: int) -> DataError:
    """The error of two sides that are out of step."""
    counts = f"{first} has {counted(first_count, 'line')}, {second} has {second_count:,}"
    problem = f"{counts}: both sides need one line for each pair"
    return DataError(problem, "find where they part; a line of one side must never be removed alone")
