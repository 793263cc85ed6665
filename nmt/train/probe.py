"""The largest batch that memory holds and that still trains faster than smaller ones: found by trying, once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from nmt.batches.batch import collate
from nmt.errors import TrainingError
from nmt.model.seq2seq import Seq2Seq
from nmt.train import memory
from nmt.train.room import Room
from nmt.train.rules import Rules
from nmt.train.update import learn

LEAST, MOST = 512, 1 << 17  # tokens that are tried
MARGIN = 0.85  # share of the free memory that may be used: the rest is for fragments, and for what others take
GAIN = 1.05  # how much faster twice the tokens must be to be worth it
RUNS = 2  # of each batch, of which the faster counts


@dataclass(frozen=True)
class Trial:
    """An update with one batch of so many tokens: the most memory that the process had, and its time."""

    tokens: int
    bytes: int
    seconds: float

    @property
    def rate(self) -> float:
        """Tokens a second."""
        return self.tokens / max(self.seconds, 1e-9)


def largest(trial: Callable[[int], Trial | None], limit: int, longest: int) -> int:
    """The most tokens of a batch that stay below `limit` bytes, or fewer where more are not faster.

    `trial` gives None where memory ran out. Each has twice the tokens of the one before, from one row of `longest`.
    Memory in between is taken to grow on a line. Raises TrainingError when not even one row fits.
    """
    size, done = max(longest, LEAST), list[Trial]()
    while size <= max(MOST, longest) and (not done or _expected(done, size) <= limit):
        found = trial(size)
        if found is None or found.bytes > limit:
            break
        done.append(found)
        if len(done) > 1 and found.rate < GAIN * done[-2].rate:
            return done[-2].tokens
        size *= 2
    if not done:
        raise TrainingError(
            f"train.batch_tokens = auto: a batch of {size:,} tokens needs more than the {limit / 2**30:.1f} GiB of "
            "memory that may be used",
            "lower train.max_source_tokens and train.max_target_tokens, or take a smaller model",
        )
    return _between(done, size, limit)


def _slope(done: list[Trial]) -> float:
    """Bytes a token; nothing smaller than what the last trial shows on the whole."""
    before = done[-2] if len(done) > 1 else Trial(0, 0, 0.0)
    return max((done[-1].bytes - before.bytes) / (done[-1].tokens - before.tokens), 1.0)


def _expected(done: list[Trial], tokens: int) -> float:
    return done[-1].bytes + _slope(done) * (tokens - done[-1].tokens) if len(done) > 1 else 0.0


def _between(done: list[Trial], size: int, limit: int) -> int:
    """Between the last trial that went well and `size`, which is too much or was not tried."""
    last = done[-1]
    if size > MOST or len(done) < 2:
        return last.tokens
    tokens = min(last.tokens + int((limit - last.bytes) / _slope(done)), size - 1)
    return max(last.tokens, tokens - tokens % 64)


def tried(
    model: Seq2Seq, optimizer: torch.optim.Optimizer, longest: tuple[int, int], rules: Rules, pad: int
) -> Callable[[int], Trial | None]:
    """Trials with a model and an optimizer that are not needed afterwards; `longest` are tokens of source and target.

    All rows are the longest, so no batch of the same size needs more.
    """
    device = model.output_weight_VD.device

    def trial(tokens: int) -> Trial | None:
        rows = max(1, tokens // max(longest))
        source, target = ([np.full(length - 1, pad + 1)] * rows for length in longest)
        batch = collate(source, target, bos=pad + 1, eos=pad + 1, pad=pad)
        room, seconds = Room(), float("inf")
        memory.forget_peak(device)
        for _ in range(RUNS):
            start = time.perf_counter()
            learn(model, optimizer, [batch], rate=0.0, rules=rules, pad=pad, room=room)
            if room.limit is not None:
                return None
            seconds = min(seconds, time.perf_counter() - start)
        return Trial(tokens, memory.peak(device), seconds)

    return trial


def memory_limit(device: torch.device, sharers: int) -> int:
    """What this process may have in all, where `sharers` processes are to share what is free."""
    return int(memory.used(device) + MARGIN * memory.available(device) / sharers)
