"""Judge pairs in several processes, in order, with a bounded number of chunks under way."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from nmt.corpus.clean import Cleaner
from nmt.corpus.filters import HELD_OUT, Filters, digest
from nmt.corpus.lines import is_blank
from nmt.corpus.recase import Recase, recased
from nmt.errors import NmtError

Pairs = Sequence[tuple[str, str]]
_SMALL = 200_000
"""Pairs below which starting processes costs more than it saves; a twentieth of it in Moses mode, which is slow."""


class Verdict(NamedTuple):
    """A cleaned pair, why it is dropped (empty: it is not, as far as the pair alone tells), and what stands for it."""

    source: str
    target: str
    reason: str
    digest: int
    said: str | None = ""
    """What the source is to the pairs after it, where that is asked for; None: they have nothing before them."""
    form: str = ""
    """How it was written anew, see recase.py."""


@dataclass(frozen=True)
class Judge:
    """Cleans and judges pairs, each on its own. `held_source`, `held_target`: digests of lines not to be kept."""

    cleaners: tuple[Cleaner, Cleaner]
    filters: Filters
    held_source: frozenset[int] = frozenset()
    held_target: frozenset[int] = frozenset()
    context: bool = False
    """Whether verdicts tell what was `said`: the source, dropped or not, but nothing that is held out."""
    recase: Recase = Recase()

    @property
    def _holds_out(self) -> bool:
        return bool(self.held_source or self.held_target)

    def __call__(self, pairs: Pairs) -> list[Verdict]:
        return [self._one(source, target) for source, target in pairs]

    def _one(self, raw_source: str, raw_target: str) -> Verdict:
        source, target = self.cleaners[0].clean(raw_source), self.cleaners[1].clean(raw_target)
        said = self.said(source, target) if self.context else ""
        reason = self.filters.reason(source, target)
        if reason:
            return Verdict("", "", reason, 0, said)
        if self._is_held_out(source, target):
            return Verdict("", "", HELD_OUT, 0, said)
        mark = digest(f"{source}\n{target}") if self.filters.drop_duplicates else 0
        if form := self.recase.form(source, target):
            written = self._recased(raw_source, form, 0), self._recased(raw_target, form, 1)
            if written != (source, target) and not self._is_held_out(*written):
                return Verdict(*written, "", mark, said, form)
        return Verdict(source, target, "", mark, said)

    def _recased(self, raw: str, form: str, side: int) -> str:
        cleaner = self.cleaners[side]
        return cleaner.clean(recased(raw, form, cleaner.language))

    def _is_held_out(self, source: str, target: str) -> bool:
        return self._holds_out and (digest(source) in self.held_source or digest(target) in self.held_target)

    def said(self, source: str, target: str) -> str | None:
        """What a clean pair's source is to later ones; None where a document ends, or training must not see it."""
        if is_blank(source):
            return None if is_blank(target) else ""
        return None if self._is_held_out(source, target) else source


def judge_all(
    judge: Judge, chunks: Iterator[Pairs], size: int | None, workers: int | None = None
) -> Generator[tuple[Pairs, list[Verdict]], None, None]:
    """Each chunk with its verdicts, in order, the same for any number of workers.

    `size`: pairs in all chunks, or None if unknown. `workers`: None is one for each core, or none at all for little
    work. Raises NmtError when a worker process dies.
    """
    if workers is None:
        heavy = any(cleaner.moses for cleaner in judge.cleaners)
        small = size is not None and size < (_SMALL // 20 if heavy else _SMALL)
        workers = 1 if small else _cores()
    if workers < 2:
        for chunk in chunks:
            yield chunk, judge(chunk)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, _begin, (judge,))
    try:
        yield from _in_order(pool, chunks, ahead=3 * workers)
    except BrokenProcessPool as error:
        raise NmtError("a worker process was killed, perhaps for want of memory", "run it again") from error
    finally:
        pool.shutdown(cancel_futures=True)


def _in_order(pool: ProcessPoolExecutor, chunks: Iterator[Pairs], ahead: int) -> Iterator[tuple[Pairs, list[Verdict]]]:
    waiting: deque[tuple[Pairs, Future[list[Verdict]]]] = deque()
    for chunk in islice(chunks, ahead):
        waiting.append((chunk, pool.submit(_work, chunk)))
    while waiting:
        chunk, verdicts = waiting.popleft()
        waiting.extend((later, pool.submit(_work, later)) for later in islice(chunks, 1))
        yield chunk, verdicts.result()


_judge: Judge


def _begin(judge: Judge) -> None:
    """Set up a worker. An interrupt is the parent's to handle, which ends the workers."""
    global _judge
    _judge = judge
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _work(chunk: Pairs) -> list[Verdict]:
    return _judge(chunk)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
