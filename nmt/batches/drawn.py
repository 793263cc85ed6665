"""Shards of one epoch whose subwords are drawn anew, made by a process of its own beside training.

Nothing here loads torch, so that such a process starts fast and stays small.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread

from nmt.batches.shards import Shard, open_shard
from nmt.corpus.lines import read_lines
from nmt.errors import DataError, NmtError
from nmt.subwords.dropout import MergeDropout
from nmt.subwords.tags import tags_before
from nmt.subwords.vocabulary import Vocabulary


@dataclass(frozen=True)
class Side:
    """One language of the training text: its lines, vocabulary and plain shard; `longest` counts no end mark."""

    text: Path
    vocabulary: Path
    plain: Path
    longest: int

    def draw(self, path: Path, dropout: float, seed: int) -> None:
        """Write the shard `path`: row r drawn with (seed, r). `seed` is that of epoch and side, below 2^63.

        A sentence whose pieces would be too many takes the plain ones, and so does one that is too long anyway: the
        pairs left out for their length are always the same. Tag and context stay as they are in the plain shard.
        Raises DataError when the text is not the shard's.
        """
        vocabulary, plain = Vocabulary.load(self.vocabulary), Shard.open(self.plain)
        tags = frozenset(vocabulary.reserved.values())
        cut, count = MergeDropout(vocabulary, dropout), 0
        with open_shard(path, len(vocabulary)) as writer:
            for row, line in enumerate(read_lines(self.text)):
                count += 1
                if row >= len(plain):
                    break
                own = ids = plain[row].tolist()
                if len(own) <= self.longest:
                    ids = own[: tags_before(own, tags)] + cut.encode(line, (seed << 64) + row)
                writer.add([ids if len(ids) <= self.longest else own])
            if count != len(plain):
                problem = f"{self.text}: its lines are not those that {self.plain} was made of"
                raise DataError(problem, "make both again with nmt bpe RECIPE")


_REQUESTS = signal.SIGINT, signal.SIGTERM

Task = tuple[Side, Path, float, int]


def draw_all(tasks: Sequence[Task]) -> None:
    """Draw each side into its path. Raises DataError, OutputError."""
    for side, path, dropout, seed in tasks:
        side.draw(path, dropout, seed)


class Drawing:
    """A process that draws shards; `wait` for them, or `stop` it."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        context = multiprocessing.get_context("spawn")
        self._answer, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=_work, args=(tasks, theirs), daemon=True)
        resource_tracker.ensure_running()  # starting it would let signals through again
        with _held_back():
            self._process.start()
        atexit.register(self._process.kill)  # before multiprocessing asks with a signal that isn't heard, and waits
        theirs.close()

    def wait(self) -> None:
        """Until the shards are there. Raises what drawing raised, NmtError when the process was killed."""
        try:
            error = self._answer.recv()
        except EOFError:
            error = NmtError("the process that draws subwords was killed, perhaps for want of memory", "run it again")
        self._end()
        if error is not None:
            raise error

    def stop(self) -> None:
        """End the process, whatever it has done."""
        self._process.kill()
        self._end()

    def _end(self) -> None:
        self._process.join()
        atexit.unregister(self._process.kill)
        self._answer.close()


@contextmanager
def _held_back() -> Iterator[None]:
    """Requests to end wait meanwhile; a process that is begun in the block never gets one."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _REQUESTS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(tasks: Sequence[Task], answer: Connection) -> None:
    for number in _REQUESTS:  # sent to all processes, it is the parent's to handle, which ends this one
        signal.signal(number, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    os.nice(5)
    try:
        draw_all(tasks)
        answer.send(None)
    except NmtError as error:
        answer.send(error)


def _end_with_parent() -> None:
    """A parent that was killed has ended nothing."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGKILL)
