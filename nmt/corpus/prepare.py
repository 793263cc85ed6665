"""The pass from raw corpora to clean pairs: clean, filter, count, write.

Memory does not grow with the corpora but for 8 to 16 bytes a kept pair where duplicates are dropped; held-out text is
kept as one digest a line. The work on pairs runs on every core, and the output is the same on one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from nmt.corpus.clean import Cleaner
from nmt.corpus.document import ContextWriter
from nmt.corpus.filters import DUPLICATE, Filters, Seen, digest
from nmt.corpus.lines import LineWriter, is_blank, open_lines, read_lines
from nmt.corpus.recase import Recase
from nmt.corpus.sources.source import Source, check_counts
from nmt.corpus.truecase import Truecaser
from nmt.corpus.workers import Judge, Verdict, judge_all
from nmt.errors import DataError
from nmt.events import Caution, Event, Notice, Progress
from nmt.files import write_json

CHUNK = 2000
EXAMPLES = 5
NO_RECASE = Recase()


@dataclass(frozen=True)
class Corpus:
    """A training corpus: where its pairs come from, and how often each counts in an epoch."""

    source: Source
    weight: float = 1.0
    tag: str | None = None
    """What is put before its source sentences: only told in the report, the text stays as it is."""


@dataclass
class Tally:
    """What became of a corpus' pairs, for report.json."""

    name: str
    weight: float = 1.0
    tag: str | None = None
    read: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    bad: Counter[str] = field(default_factory=Counter)
    recased: Counter[str] = field(default_factory=Counter)

    def drop(self, reason: str, pair: tuple[str, str]) -> None:
        """Count the pair that was read last, and keep it as an example if there are few."""
        self.dropped[reason] += 1
        shown = self.examples.setdefault(reason, [])
        if len(shown) < EXAMPLES:
            shown.append({"line": self.read, "source": pair[0][:200], "target": pair[1][:200]})

    def summary(self) -> str:
        """Such as ``read 4, kept 2, dropped 2 (empty 2)``."""
        reasons = ", ".join(f"{reason} {count}" for reason, count in self.dropped.most_common())
        text = f"read {self.read}, kept {self.kept}, dropped {self.dropped.total()}"
        return f"{text} ({reasons})" if reasons else text

    def report(self) -> dict[str, Any]:
        """The corpus' entry in report.json."""
        values = {"name": self.name, "weight": self.weight, "read": self.read, "kept": self.kept}
        bad = self.bad["bad bytes"]
        if self.tag:
            values["tag"] = self.tag
        if self.recased:
            values["recased"] = dict(self.recased)
        return {**values, "dropped": dict(self.dropped), "bad_bytes": bad, "examples": self.examples}


def prepare(
    folder: Path,
    train: Sequence[Corpus],
    valid: Source | Sequence[Corpus],
    held_out: Sequence[tuple[Path, ...]],
    cleaners: tuple[Cleaner, Cleaner],
    filters: Filters,
    *,
    on_bad_bytes: str = "error",
    truecase: bool = False,
    truecase_models: Mapping[str, Path] | None = None,
    workers: int | None = None,
    context_sentences: int = 0,
    recase: Recase = NO_RECASE,
) -> Iterator[Event]:
    """Write train.source, train.target, valid.source, valid.target and report.json into `folder`.

    `held_out`: for each test set its source file and its references. `cleaners`: of the source and the target side.
    `truecase`: learn a model of each side on the kept text, write truecase.source and truecase.target, and apply them;
    `truecase_models` names those of "source" and "target" where there are some to be used instead.
    `context_sentences`: write train.context and valid.context too, with so many lines for each pair that is kept: the
    source sentences before it in its document, dropped or not, oldest first, blank where there are fewer.
    `recase`: writes a share of the training pairs in other letters, but no context.
    `workers`: processes; None is one for each core. Corpora stay in order and contiguous. Raises DataError for sides
    out of step, bad bytes (unless `on_bad_bytes` is "replace"), missing columns, and when no pair is left.
    """
    for files in held_out:
        check_counts(files)
    sets = list(valid) if isinstance(valid, Sequence) else [Corpus(valid)]
    held = _valid_pairs(folder, sets, cleaners, on_bad_bytes, context_sentences)
    for one in held:
        yield from _say(one, "valid")
        if not one.kept:
            raise DataError(f"{one.name}: no validation pair is left: {one.summary()}", "check [data.valid]")
    judge = Judge(cleaners, filters, *_held_out(folder, held_out, cleaners, filters), context_sentences > 0, recase)
    seen = Seen() if filters.drop_duplicates else None
    tallies = []
    with _writers(folder, "train", context_sentences) as writers:
        for corpus in train:
            tally = Tally(corpus.source.name, corpus.weight, corpus.tag)
            yield from _train_pairs(corpus.source, tally, judge, seen, writers, on_bad_bytes, workers)
            yield from _say(tally)
            tallies.append(tally)
        total = _total(tallies)
        if len(tallies) > 1:
            yield Notice(f"train: {total.summary()}")
        if not total.kept:
            raise DataError(f"no training pair is left: {total.summary()}", "see [preprocess], or check the files")
    if truecase:
        yield from _truecase(folder, truecase_models or {})
    corpora = [tally.report() for tally in tallies]
    counts = {"read": total.read, "kept": total.kept, "dropped": dict(total.dropped)}
    write_json(folder / "report.json", {**counts, "corpora": corpora, **_valid_report(held)})


@dataclass(frozen=True)
class Writers:
    """Where pairs go that are kept, and, where it is asked for, what was said before each."""

    source: LineWriter
    target: LineWriter
    context: ContextWriter | None = None

    def begin(self) -> None:
        """Another corpus begins, and with it another document."""
        if self.context:
            self.context.begin()

    def write(self, source: str, target: str) -> None:
        """Keep this pair."""
        self.source.write(source)
        self.target.write(target)
        if self.context:
            self.context.write()

    def say(self, sentence: str | None) -> None:
        """What pairs after the last have before them, whether or not it was kept; None ends a document."""
        if self.context:
            self.context.say(sentence)


@contextmanager
def _writers(folder: Path, split: str, context_sentences: int) -> Iterator[Writers]:
    with ExitStack() as stack:
        source, target = (stack.enter_context(open_lines(folder / f"{split}.{side}")) for side in ("source", "target"))
        if not context_sentences:
            yield Writers(source, target)
            return
        context = stack.enter_context(open_lines(folder / f"{split}.context"))
        yield Writers(source, target, ContextWriter(context, context_sentences))


def _train_pairs(
    source: Source,
    tally: Tally,
    judge: Judge,
    seen: Seen | None,
    writers: Writers,
    on_bad_bytes: str,
    workers: int | None,
) -> Iterator[Event]:
    """Write the pairs of one corpus that are kept, and say after each chunk how far it is."""
    size = source.count()
    pairs = source.pairs(on_bad_bytes, tally.bad)
    chunks = iter(lambda: list(islice(pairs, CHUNK)), [])
    label = f"preprocess {source.name}"
    writers.begin()
    yield Progress(label, 0, size, "pairs")
    with closing(judge_all(judge, chunks, size, workers)) as judged:
        for chunk, verdicts in judged:
            _write_kept(chunk, verdicts, tally, seen, writers)
            yield Progress(label, tally.read, size, "pairs")


def _write_kept(
    chunk: Sequence[tuple[str, str]],
    verdicts: Sequence[Verdict],
    tally: Tally,
    seen: Seen | None,
    writers: Writers,
) -> None:
    mark = digest(tally.tag) if tally.tag else 0  # under another tag, an equal pair says something else
    repeated = iter(seen.add([verdict.digest ^ mark for verdict in verdicts if not verdict.reason]) if seen else [])
    for pair, verdict in zip(chunk, verdicts, strict=True):
        tally.read += 1
        reason = verdict.reason or (DUPLICATE if next(repeated, False) else "")
        if reason:
            tally.drop(reason, pair)
        else:
            tally.kept += 1
            tally.recased.update([verdict.form] if verdict.form else [])
            writers.write(verdict.source, verdict.target)
        writers.say(verdict.said)


def _valid_pairs(
    folder: Path, sets: Sequence[Corpus], cleaners: tuple[Cleaner, Cleaner], on_bad_bytes: str, context_sentences: int
) -> list[Tally]:
    """Write the cleaned validation pairs, all but the blank ones, which no loss can be taken of."""
    tallies = []
    said = Judge(cleaners, Filters(), context=True).said
    with _writers(folder, "valid", context_sentences) as writers:
        for valid in sets:
            writers.begin()
            tally = Tally(valid.source.name, tag=valid.tag)
            for pair in valid.source.pairs(on_bad_bytes, tally.bad):
                tally.read += 1
                clean = cleaners[0].clean(pair[0]), cleaners[1].clean(pair[1])
                if is_blank(clean[0]) or is_blank(clean[1]):
                    tally.drop("empty", pair)
                else:
                    tally.kept += 1
                    writers.write(*clean)
                writers.say(said(*clean))
            tallies.append(tally)
    return tallies


def _valid_report(held: Sequence[Tally]) -> dict[str, Any]:
    """The validation set in report.json: one alone, or all together and then each."""
    if len(held) == 1:
        return {"valid": held[0].report()}
    return {"valid": _total(held, "valid").report(), "valid_sets": [tally.report() for tally in held]}


def _held_out(
    folder: Path, tests: Sequence[tuple[Path, ...]], cleaners: tuple[Cleaner, Cleaner], filters: Filters
) -> tuple[frozenset[int], frozenset[int]]:
    """Digests of the cleaned lines that training must not hold: of the source side, and of the target side.

    Bad bytes in test sets are replaced here, since what reads the sets for their scores says what is to be done.
    """
    if not filters.drop_held_out:
        return frozenset(), frozenset()
    found: tuple[set[int], set[int]] = set(), set()
    for side, name in enumerate(("valid.source", "valid.target")):
        found[side].update(digest(line) for line in read_lines(folder / name))
    for files in tests:
        for i, path in enumerate(files):
            side = min(i, 1)
            lines = (cleaners[side].clean(line) for line in read_lines(path, "replace"))
            found[side].update(digest(line) for line in lines if not is_blank(line))
    return frozenset(found[0]), frozenset(found[1])


def _truecase(folder: Path, models: Mapping[str, Path]) -> Iterator[Event]:
    """Learn each side's model on the kept text, unless there is one, and write the text again in true case."""
    for side in ("source", "target"):
        yield Progress(f"truecase {side}", 0)
        if side in models:
            truecaser = Truecaser.load(models[side])
        else:
            truecaser = Truecaser.learn(read_lines(folder / f"train.{side}"))
        truecaser.save(folder / f"truecase.{side}")
        names = (side, "context") if side == "source" else (side,)
        texts = (folder / f"{split}.{name}" for split in ("train", "valid") for name in names)
        for path in filter(Path.is_file, texts):
            with open_lines(path) as out:
                for line in read_lines(path):
                    out.write(truecaser.apply(line))
        yield Progress(f"truecase {side}", 1, 1)


def _say(tally: Tally, label: str = "") -> Iterator[Event]:
    yield Notice(f"{label + ' ' if label else ''}{tally.name}: {tally.summary()}")
    if count := tally.bad["bad bytes"]:
        yield Caution(f"{tally.name}: {count} invalid UTF-8 sequences became U+FFFD")
    if tally.recased:
        forms = ", ".join(f"{count} in {form}" for form, count in sorted(tally.recased.items()))
        yield Notice(f"{tally.name}: of the pairs kept, {forms}")


def _total(tallies: Sequence[Tally], name: str = "train") -> Tally:
    total = Tally(name, read=sum(t.read for t in tallies), kept=sum(t.kept for t in tallies))
    for tally in tallies:
        total.dropped.update(tally.dropped)
    return total
