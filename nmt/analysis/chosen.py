"""Which sentences a report looks into, and what was seen of them. Loads no model; nmt/analysis/seen.py does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nmt.analysis.lengths import length
from nmt.analysis.record import Line, Record, TestSet
from nmt.corpus.lines import is_blank
from nmt.errors import SettingsError
from nmt.score.config import ChrfConfig
from nmt.score.languages import UNSPACED, base

WORDS, CHARACTERS = (3, 12), (6, 24)
"""The shortest and the longest source that is taken: a map of more does not fit a phone."""
FEWEST = 10
"""Sources of such a length, or the shortest of all are taken instead."""


@dataclass(frozen=True)
class Sentence:
    """A source sentence that several runs may translate."""

    label: str
    """Why it was chosen."""
    source: str
    references: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    """The sentences before it, oldest first, for models that read them."""
    tag: str = ""
    """What the models put before it."""
    translations: Mapping[int, str] = field(default_factory=dict)
    """What runs, by their number, made of it; the others in `runs` are asked."""
    runs: tuple[int, ...] = ()
    """The runs whose models are to be looked into."""
    chooser: int | None = None
    """The run by whose translations it was chosen."""


@dataclass(frozen=True)
class Seen:
    """A model's cross-attention for a sentence and its translation."""

    translation: str
    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    links: tuple[tuple[int, int], ...]
    """Source word and target word, from 0."""
    rows: tuple[str, ...]
    """What each step writes, end mark included."""
    columns: tuple[str, ...]
    """The source and its end mark."""
    weights: tuple[tuple[tuple[tuple[float, ...], ...], ...], ...]
    """Layer, head, row, column."""
    layer: int
    """The layer, from 0, that words are aligned by."""

    def mean(self) -> list[list[float]]:
        """The mean over the heads of `layer`."""
        heads = self.weights[self.layer]
        return [[sum(cell) / len(heads) for cell in zip(*row, strict=True)] for row in zip(*heads, strict=True)]


@dataclass(frozen=True)
class Sights:
    """What was seen of each sentence by each run's model, by their numbers, and why some models saw nothing."""

    sentences: tuple[Sentence, ...]
    seen: Mapping[tuple[int, int], Seen]
    """By sentence and run."""
    problems: Mapping[int, str]
    """By run."""


def choose(records: Sequence[Record], asked: Sequence[str] = (), context: Sequence[str] = ()) -> tuple[Sentence, ...]:
    """The sentences `asked` for; otherwise the best, the median and the worst of a first test set's short lines.

    `context` stands before each sentence asked for, as the lines before it do for one of a test set. Runs of the same
    languages look at the same sentences, those of the first of them that has translations. Raises SettingsError for
    context that no run's model reads.
    """
    if context and not any(map(reads, records)):
        raise SettingsError("no run's model reads context: all were trained on single sentences", "leave it out")
    if asked:
        return tuple(Sentence("", text, context=tuple(context), runs=tuple(range(len(records)))) for text in asked)
    found: list[Sentence] = []
    for i, record in enumerate(records):
        if not any(i in sentence.runs for sentence in found):
            alike = [j for j, other in enumerate(records) if other.languages == record.languages]
            found += _of_run(i, alike, records)
    return tuple(found)


def _of_run(chooser: int, alike: Sequence[int], records: Sequence[Record]) -> Iterator[Sentence]:
    """Sentences of a run's first test set that has been translated, for the runs with the numbers `alike`."""
    record = records[chooser]
    test = next((test for test in record.tests if any(map(_full, test.lines))), None)
    if test is None:
        return
    known = {i: {line.source: line.translation for set_ in records[i].tests for line in set_.lines} for i in alike}
    for label, line in _three(test, record):
        texts = {i: lines[line.source] for i, lines in known.items() if not is_blank(lines.get(line.source, ""))}
        most = max(reads(records[i]) for i in alike)
        before = tuple(other.source for other in test.lines[max(line.number - 1 - most, 0) : line.number - 1])
        yield Sentence(label, line.source, line.references, before, test.tag, texts, tuple(alike), chooser)


def _three(test: TestSet, record: Record) -> Iterator[tuple[str, Line]]:
    source, target = record.languages
    metric = ChrfConfig().build(target)
    lines = _short([line for line in test.lines if _full(line)], source)
    values = {line.number: metric.sentence(line.translation, line.references) for line in lines}
    ordered = sorted(lines, key=lambda line: (values[line.number], length(line.source, source), -line.number))
    places = {"Best": len(ordered) - 1, "Median": len(ordered) // 2, "Worst": 0}
    taken: set[int] = set()
    for name, place in places.items():
        if place not in taken:
            taken.add(place)
            line = ordered[place]
            what = f"line {line.number:,} of {test.name}, chrF {values[line.number]:.1f}"
            yield f"{name} of {len(lines):,} short lines: {what}", line


def _short(lines: Sequence[Line], language: str) -> list[Line]:
    """The lines whose source fits a small map; where there are too few, the shortest."""
    low, high = CHARACTERS if base(language) in UNSPACED else WORDS
    kept = [line for line in lines if low <= length(line.source, language) <= high]
    return kept if len(kept) >= FEWEST else sorted(lines, key=lambda line: length(line.source, language))[:FEWEST]


def reads(record: Record) -> int:
    """How many sentences before each one the run's model reads."""
    return int(record.recipe.get("preprocess", {}).get("context_sentences", 0))


def _full(line: Line) -> bool:
    return not is_blank(line.source) and not is_blank(line.translation)
