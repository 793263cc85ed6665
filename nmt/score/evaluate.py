"""Files in, scores and warnings out: what `nmt score` and the score stage share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.corpus.lines import is_blank
from nmt.score.checks import source_warnings, warnings
from nmt.score.config import Bleu2017Config, BleuConfig, MetricConfig
from nmt.score.languages import UNSPACED, base, guess_unspaced, tokenizer_for, tokenizer_warning
from nmt.score.metric import Buildable, Score, missing_references
from nmt.score.significance import score_with_interval
from nmt.score.texts import Texts, read_texts
from nmt.wording import counted


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
    texts = read_texts([hypothesis], references, source, on_bad_bytes)
    return evaluate_texts(texts, metrics, language, sentences=sentences)[0]


def evaluate_texts(
    texts: Texts, metrics: Sequence[Buildable], language: str, *, sentences: bool = False, resamples: int = 0
) -> list[Result]:
    """A Result for each system of `texts`; with `resamples`, scores have confidence intervals."""
    built = [metric.build(language) for metric in metrics]
    results = []
    for name, lines in zip(texts.names, texts.systems, strict=True):
        cautions = _cautions(lines, name, texts, metrics, language)
        if resamples:
            scores = [score_with_interval(metric, lines, texts.references, resamples) for metric in built]
        else:
            scores = [metric.score(lines, texts.references) for metric in built]
        rows = ((line, texts.referred(i)) for i, line in enumerate(lines)) if sentences else ()
        values = tuple(tuple(metric.sentence(line, refs) for metric in built) for line, refs in rows)
        results.append(Result(name, texts.reference_names, len(lines), tuple(scores), values, tuple(cautions)))
    return results


def _cautions(hypotheses: list[str], name: str, texts: Texts, metrics: Sequence[Buildable], language: str) -> list[str]:
    found = warnings(hypotheses, name)
    empty = sum(1 for line in hypotheses if is_blank(line))
    if empty:
        found.append(f"{name} is empty in {empty:,} of {counted(len(hypotheses), 'line')}")
    for reference, lines in zip(texts.reference_names, texts.references, strict=True):
        found += warnings(lines, reference)
    found += _reference_cautions(texts.references)
    for metric in metrics:
        if isinstance(metric, BleuConfig):
            found.append(_tokenizer_caution(texts.references[0], metric.tokenize, language))
        elif isinstance(metric, Bleu2017Config):
            found.append(_tokenizer_caution(texts.references[0], "moses", language))
    if texts.source is not None:
        of = f"{name}: " if len(texts.systems) > 1 else ""
        found += [of + text for text in source_warnings(hypotheses, texts.source)]
    return [text for text in dict.fromkeys([*found, *texts.cautions]) if text]


def _reference_cautions(references: Sequence[list[str]]) -> list[str]:
    found = []
    missing = missing_references(references)
    if missing:
        lines = counted(missing, "blank line in the references counts", "blank lines in the references count")
        found.append(f"{lines} as no reference there")
    alone = sum(1 for column in zip(*references, strict=True) if all(is_blank(line) for line in column))
    if alone:
        found.append(
            f"{alone:,} of {counted(len(references[0]), 'sentence')} have only blank references; they count as segments"
        )
    return found


def _in_words(lines: list[str]) -> bool:
    """Whether the text has been tokenised: then splitting at spaces is right in languages that don't write them."""
    return 8 * sum(line.count(" ") for line in lines) > sum(map(len, lines))


def _tokenizer_caution(lines: list[str], tokenize: str | None, language: str) -> str:
    at_spaces = tokenize in ("none", "13a", "intl") and base(language) in UNSPACED and _in_words(lines)
    text = "" if at_spaces else tokenizer_warning(language, tokenize)
    looks = guess_unspaced(lines)
    if text or not looks:
        return text
    if not base(language):
        unfit = tokenizer_warning(looks, tokenize or tokenizer_for(""))
        return f"the references look like {looks} and no language is given: {unfit}" if unfit else ""
    if tokenizer_for(language) == "13a" and tokenize is None:
        return f"the language is {language}, but the references look like {looks}, which 13a does not split into words"
    return ""
