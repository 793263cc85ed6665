"""Translations of a run's test sets beside their references: by length, some of all, and the worst."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nmt.analysis.differences import marked, nearest
from nmt.analysis.lengths import buckets
from nmt.analysis.markup import Markup, details, escape, join, section, table, tag
from nmt.analysis.record import Line, Record, TestSet
from nmt.checking import check
from nmt.errors import DataError
from nmt.score.config import ChrfConfig, ScoreConfig
from nmt.score.languages import UNSPACED, base

SHOWN = 10


def examples(record: Record) -> Iterator[Markup]:
    """A section on each test set."""
    for test in record.tests:
        if test.problem:
            yield section(f"Translations of {test.name}", tag("p", test.problem, class_="soft"))
        elif test.lines:
            yield section(f"Translations of {test.name}", _lengths(test, record), *_lists(test, record.languages[1]))


def _lengths(test: TestSet, record: Record) -> Markup:
    """The recipe's first metric for short and for long sources."""
    source, target = record.languages
    settings = check(ScoreConfig, record.recipe.get("score", {}), "recipe.toml")
    if not settings.metrics:
        return Markup()
    try:
        metric = settings.metrics[0].build(target)
    except DataError as error:
        return tag("p", f"No scores by length: {error.problem}", class_="soft")
    found = buckets(test.lines, source, metric)
    if not found:
        return Markup()
    name, top = found[0].score.name, max(1e-9, *(bucket.score.value for bucket in found))
    unit = "characters" if base(source) in UNSPACED else "words"
    rows = [
        [
            f"{bucket.shortest}–{bucket.longest}" if bucket.longest > bucket.shortest else str(bucket.longest),
            f"{bucket.lines:,}",
            f"{bucket.score.value:.2f}",
            tag("i", class_="stick", style=f"width:{100 * bucket.score.value / top:.1f}%"),
        ]
        for bucket in found
    ]
    return join(
        [
            tag("h3", f"{name} by length of the source, n = {len(test.lines):,}"),
            table([unit, "lines", name, ""], rows, [0, 1, 2]),
        ]
    )


def _lists(test: TestSet, language: str) -> Iterator[Markup]:
    metric = ChrfConfig().build(language)
    values = {line.number: metric.sentence(line.translation, line.references) for line in test.lines}
    worst = sorted(test.lines, key=lambda line: values[line.number])[:SHOWN]
    yield tag(
        "p",
        "In a translation, ",
        tag("mark", "words that the reference lacks", class_="extra"),
        " are marked; in the reference, ",
        tag("mark", "words that the translation lacks", class_="missed"),
        ". A marked word need not be wrong. The number is chrF of the sentence.",
        class_="soft",
    )
    yield details("A sample", _pairs(sample(test.lines), values, language), open_=True)
    yield details(f"The {len(worst)} with the lowest chrF", _pairs(worst, values, language))


def sample(lines: Sequence[Line], count: int = SHOWN) -> list[Line]:
    """Lines at equal distances, from the first on."""
    count = min(count, len(lines))
    return [lines[i * len(lines) // count] for i in range(count)]


def _pairs(lines: Sequence[Line], values: dict[int, float], language: str) -> Markup:
    return tag("ol", *(_pair(line, values[line.number], language) for line in lines), class_="pairs")


def _pair(line: Line, value: float, language: str) -> Markup:
    reference = nearest(line.translation, line.references, language)
    ours, theirs = marked(line.translation, reference, language)
    others = [text for text in line.references if text != reference]
    return tag(
        "li",
        tag("span", f"line {line.number:,}, chrF {value:.1f}", class_="place"),
        tag("p", escape(line.source), class_="source", dir="auto"),
        tag("p", ours or "(empty)", class_="ours", dir="auto"),
        tag("p", theirs, class_="theirs", dir="auto"),
        *(tag("p", text, class_="theirs", dir="auto") for text in others),
    )
