"""Translations of one test set by one or several systems, with the references and the source, read and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.corpus.lines import read_lines
from nmt.errors import DataError
from nmt.score.metric import check_counts
from nmt.wording import counted


@dataclass(frozen=True)
class Texts:
    """As many lines everywhere: line i belongs to line i. `cautions` tell what was changed while reading."""

    names: tuple[str, ...]
    systems: tuple[list[str], ...]
    reference_names: tuple[str, ...]
    references: tuple[list[str], ...]
    source: list[str] | None = None
    cautions: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.systems[0])

    @property
    def labels(self) -> tuple[str, ...]:
        """Short names for tables: the systems' file names where they tell them apart, otherwise their paths."""
        short = tuple(Path(name).name for name in self.names)
        return short if len(set(short)) == len(short) else self.names

    def referred(self, line: int) -> tuple[str, ...]:
        """The references of line `line` (from 0), blank ones too."""
        return tuple(lines[line] for lines in self.references)


def read_texts(
    systems: Sequence[Path | str],
    references: Sequence[Path | str],
    source: Path | str | None = None,
    on_bad_bytes: str = "error",
) -> Texts:
    """Read the files, of which one may be stdin ("-").

    Raises DataError when a file cannot be read, when two are stdin or when line counts differ.
    """
    paths = [str(path) for path in (*systems, *references, *([source] if source else []))]
    if paths.count("-") > 1:
        raise DataError("two of the files are stdin", "name all but one of them")
    names = ["stdin" if path == "-" else path for path in paths]
    twice = next((name for name in names[: len(systems)] if names[: len(systems)].count(name) > 1), None)
    if twice:
        raise DataError(f"{twice} is named twice as a system", "name each system once; a copy needs a name of its own")
    tallies: list[Counter[str]] = [Counter() for _ in paths]
    texts = [list(read_lines(path, on_bad_bytes, tally)) for path, tally in zip(paths, tallies, strict=True)]
    first, last = len(systems), len(systems) + len(references)
    for name, lines in zip(names[:first], texts[:first], strict=True):
        check_counts(lines, texts[first:], name, names[first:])
    return Texts(
        names=tuple(names[:first]),
        systems=tuple(texts[:first]),
        reference_names=tuple(names[first:last]),
        references=tuple(texts[first:last]),
        source=texts[last] if source else None,
        cautions=tuple(_cautions(names, tallies)),
    )


def _cautions(names: Sequence[str], tallies: Sequence[Counter[str]]) -> Iterator[str]:
    """What was changed while reading."""
    if bad := sum(tally["bad bytes"] for tally in tallies):
        yield f"U+FFFD stands in place of invalid UTF-8 in {counted(bad, 'place')}"
    for name, tally in zip(names, tallies, strict=True):
        if tally["byte order marks"]:
            yield f"{name} begins with a byte order mark, which is left out; sacrebleu's program scores it as text"
