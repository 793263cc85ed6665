"""Shards of one epoch whose subwords are drawn anew, made by a process of its own beside training.

Nothing here loads torch, so that such a process starts fast and stays small.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

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
        self._process.start()
        theirs.close()

    def wait(self) -> None:
        """Until the shards are there. Raises what drawing raised, NmtError when the process was killed."""
        try:
            error = self._answer.recv()
        except EOFError:
            error = NmtError("the process that draws subwords was killed, perhaps for want of memory", "run it again")
        self._process.join()
        self._answer.close()
        if error is not None:
            raise error

    def stop(self) -> None:
        """End the process, whatever it has done."""
        self._process.terminate()
        self._process.join()
        self._answer.close()


def _work(tasks: Sequence[Task], answer: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to handle, which ends this one
    os.nice(5)
    try:
        draw_all(tasks)
        answer.send(None)
    except NmtError as error:
        answer.send(error)
