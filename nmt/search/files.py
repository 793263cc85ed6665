"""Translate and rescore whole files or streams, in one of the formats, telling what happens as events."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, Literal

from nmt.corpus.lines import LineWriter, is_blank, keep_apart, open_lines, read_lines, read_once
from nmt.errors import DataError
from nmt.events import Caution, Event, Notice, Progress
from nmt.search.asked import Asked
from nmt.search.control.request import Request
from nmt.search.feed import live
from nmt.search.formats import Format, Record, jsonl, one_object, rounded, writer
from nmt.search.resume import Kept
from nmt.search.translate import Translator
from nmt.search.translation import Candidate, Translation
from nmt.wording import bad_bytes, counted

_NAMED = 10  # most lines named in one caution


def translate_file(
    translator: Translator,
    source: Path | str,
    output: Path | str,
    *,
    form: Format = "text",
    source_form: Literal["text", "jsonl"] = "text",
    n_best: int = 1,
    scores: bool = False,
    on_bad_bytes: str = "error",
    label: str = "translate",
    records: Path | None = None,
    prefix: Path | None = None,
    alignment: bool = False,
    reorder: Callable[[Translation], Translation] = lambda translation: translation,
    common: Request | None = None,
    resume: Kept | None = None,
    **settings: Any,
) -> Iterator[Event]:
    """Translate `source` line by line into `output`; "-" is stdin or stdout, and a file appears when it is whole.

    `records` names a second file, which gets the same translations as jsonl with scores. `prefix` names one with the
    beginning of every translation, and `common` holds what else is asked of all lines. `alignment` tells which source
    word each word comes from; `reorder` may put the alternatives of a translation into another order. `resume` knows
    what an interrupted job has left of `output`, to which the rest is added; `source` is a file then.

    A file is read through before anything is written, so that invalid UTF-8 or JSON is an error that leaves no
    output; of a stream, everything up to `buffer_lines` before the bad line may be written already. A stream that
    pauses gets its translations at once. Prefixes may be a stream too. Raises DataError, OutputError, and NmtError
    for unfit settings.
    """
    keep_apart(source, output)
    reads_context = translator.context.sentences > 0
    asked = Asked(source, source_form, on_bad_bytes, prefix, common or Request(""), reads_context)
    tally: Counter[str] = Counter()
    total = None
    if not read_once(source):
        total = 0
        for request, _ in asked.checkable().requests():
            total += 1
            if not is_blank(request.source):
                translator.tags.lead(request.tag, f"line {total}: ")
    if resume is not None and resume.whole():
        yield Notice(f"{output} is whole already")
        return
    given: deque[Record] = deque()

    def requests(first: int) -> Iterator[Request]:
        lines = translator.context.lines()
        followed = ((lines.follow(request), record) for request, record in asked.requests(tally))
        for request, record in islice(followed, first, None):
            given.append(record)
            yield request

    cut: list[int] = []
    form_lines = writer(form, scores, alignment)
    with (
        resume.going_on(total or 0) if resume else opened_anew(output) as (out, first),
        open_lines(records) if records else nullcontext() as beside,
    ):
        yield Progress(label, first, total, "lines")
        if first:
            yield Notice(f"{output}: {counted(first, 'line is', 'lines are')} there; going on from line {first + 1:,}")
        feed = live(requests(first)) if asked.pauses else requests(first)
        found = translator.underway(feed, n_best=n_best, alignment=alignment, first=first, **settings)
        for translation in found:
            if isinstance(translation, int):
                yield Progress(label, translation, total, "lines")
                continue
            translation = reorder(translation)
            record = given.popleft()
            for line in form_lines(translation, record):
                out.write(line)
            if beside is not None:
                beside.write(jsonl(translation, record, scores=True))
            if resume or str(output) == "-":
                out.flush()
            yield from map(Caution, translation.cautions)
            if not translation.best.finished:
                cut.append(translation.number + 1)
            yield Progress(label, translation.number + 1, total, "lines")
    yield from _last_words(cut, tally)


@contextmanager
def opened_anew(output: Path | str) -> Iterator[tuple[LineWriter, int]]:
    """Where to write from the first line on."""
    with open_lines(output) as out:
        yield out, 0


def rescore_files(
    translator: Translator,
    source: Path | str,
    target: Path | str,
    output: Path | str,
    *,
    form: Literal["text", "jsonl"] = "text",
    on_bad_bytes: str = "error",
    tag: str = "",
    **settings: Any,
) -> Iterator[Event]:
    """Write the model's own score of each line of `target` as a translation of its line of `source`, after `tag`.

    Files are read through before anything is written. Lines longer than the model's limit are scored as a whole,
    since nothing tells which part of a translation belongs to which part of a source; they are named at the end.
    Raises DataError also when the counts of lines differ.
    """
    keep_apart(source, output)
    keep_apart(target, output)
    translator.tags.lead(tag)
    streams = [path for path in (source, target) if read_once(path)]
    counts = [sum(1 for _ in read_lines(path, on_bad_bytes)) for path in (source, target) if not read_once(path)]
    if len(counts) == 2 and counts[0] != counts[1]:
        raise _unequal(source, target, counts[0], counts[1])
    tally: Counter[str] = Counter()
    pairs: deque[tuple[str, str]] = deque()

    def zipped() -> Iterator[tuple[str, str]]:
        sides = [read_lines(path, on_bad_bytes, tally) for path in (source, target)]
        for number, (one, other) in enumerate(zip_longest(*sides), 1):
            if one is None or other is None:
                rest = number + sum(1 for side in sides for _ in side)
                counts = (number - 1, rest) if one is None else (rest, number - 1)
                raise _unequal(source, target, *counts)
            pairs.append((one, other))
            yield one, other

    cut: list[int] = []
    strained: list[int] = []
    scored = translator.rescore_stream(live(zipped()) if streams else zipped(), tag=tag, **settings)
    with open_lines(output) as out:
        for number, candidate in enumerate(scored, 1):
            one, other = pairs.popleft()
            out.write(_scored(one, other, candidate) if form == "jsonl" else f"{candidate.score:.6f}")
            if str(output) == "-":
                out.flush()
            if not candidate.finished:
                cut.append(number)
            elif (candidate.source_length or 0) > translator.max_source_tokens:
                strained.append(number)
            yield Progress("rescore", number, counts[0] if counts else None, "lines")
    if cut:
        yield Caution(f"only as much as the model takes was scored of {_lines_named(cut)}")
    if strained:
        limit = f"{translator.max_source_tokens:,} tokens, the model's limit, where nmt translate splits"
        yield Caution(f"a source of more than {limit}, was scored as a whole: {_lines_named(strained)}")
    yield from _last_words([], tally)


def _scored(source: str, target: str, candidate: Candidate) -> str:
    return one_object(
        {
            "source": source,
            "target": target,
            "score": round(candidate.score, 6),
            "log_probability": round(candidate.log_probability, 6),
            "tokens": list(candidate.tokens),
            "token_log_probabilities": rounded(candidate.token_log_probabilities),
        }
    )


def _last_words(cut: list[int], tally: Counter[str]) -> Iterator[Event]:
    """What is told once, at the end."""
    if cut:
        many = counted(len(cut), "translation was", "translations were")
        yield Caution(f"{many} cut at the limit of length: {_lines_named(cut)}")
    if tally["bad bytes"]:
        yield Caution(bad_bytes(tally["bad bytes"]))
    if tally["half pairs"]:
        halves = counted(tally["half pairs"], "half of a surrogate pair", "halves of surrogate pairs")
        yield Caution(f"{halves} in JSON stood alone; U+FFFD is in their place")


def _lines_named(numbers: list[int]) -> str:
    named = ", ".join(f"{number:,}" for number in numbers[:_NAMED])
    more = f" and {len(numbers) - _NAMED:,} more" if len(numbers) > _NAMED else ""
    return f"line{'s' if len(numbers) > 1 else ''} {named}{more}"


def _name(path: Path | str) -> str:
    return "stdin" if str(path) == "-" else str(path)


def _unequal(source: Path | str, target: Path | str, sources: int, targets: int) -> DataError:
    counts = f"{_name(source)} has {counted(sources, 'line')}, {_name(target)} has {targets:,}"
    return DataError(
        f"{counts}; they are pairs by line number",
        "give two files with one line for each pair",
    )
