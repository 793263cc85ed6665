"""Files in, scores and warnings out: what `nmt score` and the score stage share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.corpus.lines import is_blank, read_lines
from nmt.errors import DataError
from nmt.score.checks import source_warnings, warnings
from nmt.score.config import BleuConfig, MetricConfig
from nmt.score.languages import base, guess_unspaced, tokenizer_for, tokenizer_warning
from nmt.score.metric import Score, check_counts, missing_references


@dataclass(frozen=True)
class Result:
    """Scores of one set of translations; `sentences` has a row of values, in the metrics' order, for each line."""

    hypothesis: str
    references: tuple[str, ...]
    segments: int
    scores: tuple[Score, ...]
    sentences: tuple[tuple[float, ...], ...]
    cautions: tuple[str, ...]


def evaluate(
    hypothesis: Path | str,
    references: Sequence[Path | str],
    metrics: Sequence[MetricConfig],
    language: str,
    *,
    source: Path | str | None = None,
    on_bad_bytes: str = "error",
    sentences: bool = False,
) -> Result:
    """Score the lines of a file, or of stdin ("-"), against one or several reference files in `language` (or "").

    Raises DataError when a file cannot be read, when line counts differ, or when a tokenizer is not installed.
    """
    paths = [str(path) for path in (hypothesis, *references, *([source] if source else []))]
    if paths.count("-") > 1:
        raise DataError("two of the files are stdin", "name all but one of them")
    names = ["stdin" if path == "-" else path for path in paths]
    tally: Counter[str] = Counter()
    texts = [list(read_lines(path, on_bad_bytes, tally)) for path in paths]
    count = 1 + len(references)
    check_counts(texts[0], texts[1:], names[0], names[1:])
    cautions = _cautions(texts[0], texts[1:count], names[:count], metrics, language)
    if source:
        cautions += source_warnings(texts[0], texts[-1])
    if tally["bad bytes"]:
        cautions.append(f"U+FFFD stands in place of invalid UTF-8 in {tally['bad bytes']} places")
    built = [metric.build(language) for metric in metrics]
    scores = tuple(metric.score(texts[0], texts[1:count]) for metric in built)
    columns = zip(*texts[1:count], strict=True)
    rows = ((h, refs) for h, refs in zip(texts[0], columns, strict=True)) if sentences else ()
    values = tuple(tuple(metric.sentence(line, refs) for metric in built) for line, refs in rows)
    return Result(names[0], tuple(names[1:count]), len(texts[0]), scores, values, tuple(cautions))


def _cautions(
    hypotheses: list[str],
    references: list[list[str]],
    names: list[str],
    metrics: Sequence[MetricConfig],
    language: str,
) -> list[str]:
    found = warnings(hypotheses, names[0])
    empty = sum(1 for line in hypotheses if is_blank(line))
    if empty:
        found.append(f"{names[0]} is empty in {empty} of {len(hypotheses)} lines")
    for name, lines in zip(names[1:], references, strict=True):
        found += warnings(lines, name)
    found += _reference_cautions(references)
    for metric in metrics:
        if isinstance(metric, BleuConfig):
            found.append(_tokenizer_caution(references[0], metric.tokenize, language))
    return [text for text in dict.fromkeys(found) if text]


def _reference_cautions(references: list[list[str]]) -> list[str]:
    found = []
    missing = missing_references(references)
    if missing:
        found.append(f"{missing} blank lines in the references count as no reference there")
    alone = sum(1 for column in zip(*references, strict=True) if all(is_blank(line) for line in column))
    if alone:
        found.append(f"{alone} of {len(references[0])} sentences have only blank references; they count as segments")
    return found


def _tokenizer_caution(lines: list[str], tokenize: str | None, language: str) -> str:
    text = tokenizer_warning(language, tokenize)
    looks = guess_unspaced(lines)
    if text or not looks:
        return text
    if not base(language):
        unfit = tokenizer_warning(looks, tokenize or tokenizer_for(""))
        return f"the references look like {looks} and no language is given: {unfit}" if unfit else ""
    if tokenizer_for(language) == "13a" and tokenize is None:
        return f"the language is {language}, but the references look like {looks}, which 13a does not split into words"
    return ""
