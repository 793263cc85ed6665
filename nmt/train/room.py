"""What to do when memory runs out in the middle of an update: the batch is halved, and the gradient stays the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from nmt.batches.batch import Batch
from nmt.errors import TrainingError


class Room:
    """How large a batch this process has found too large for its memory, if any was."""

    def __init__(self) -> None:
        self.limit: int | None = None
        """Padded tokens, of the longer side, of the smallest batch that did not fit."""

    def cut(self, batches: Sequence[Batch], pad: int) -> list[Batch]:
        """The batches, those that are known not to fit halved until they may. The rows stay in order."""
        if self.limit is None:
            return list(batches)
        return [part for batch in batches for part in self._parts(batch, pad)]

    def learn(self, batch: Batch) -> None:
        """`batch` did not fit. Raises TrainingError when it is a single pair, which cannot be halved."""
        if len(batch.src_BS) < 2:
            raise TrainingError(
                f"one pair of {batch.src_BS.size(1)} source and {batch.tgt_BT.size(1)} target tokens needs more memory "
                "than there is",
                "lower train.max_source_tokens and train.max_target_tokens, or take a smaller model",
            )
        self.limit = padded(batch)

    def _parts(self, batch: Batch, pad: int) -> list[Batch]:
        assert self.limit is not None
        if padded(batch) < self.limit or len(batch.src_BS) < 2:
            return [batch]
        return [part for half in batch.halves(pad) for part in self._parts(half, pad)]


def padded(batch: Batch) -> int:
    """Tokens of the batch's longer side, padding counted: what `batch_tokens` limits."""
    return len(batch.src_BS) * max(batch.src_BS.size(1), batch.tgt_BT.size(1))


SMALLER_BATCHES = (
    "lower train.batch_tokens, and raise train.accumulate instead; the same command goes on from the newest checkpoint"
)
SMALLER_MODEL = "take a smaller [model]; nmt recipe estimate RECIPE --gpu h100 tells how much memory this one needs"
_SIGNS = (
    "can't allocate memory",
    "Cannot allocate memory",
    "std::bad_alloc",
    "out of memory",
    "ALLOC_FAILED",
    "Storage size calculation overflowed",  # more than any machine can have
)
_WHOLE = ("could not create a primitive", "could not execute a primitive")  # oneDNN's; with more, it is another matter


def ran_out(error: BaseException) -> bool:
    """Whether there was not the memory for something, whoever wanted it: torch, Python, a library, the system."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    told = str(error)
    found = told in _WHOLE or any(sign in told for sign in _SIGNS)
    return isinstance(error, RuntimeError | OSError) and found


@contextmanager
def memory_for(work: str, rank: int, hint: str = SMALLER_BATCHES) -> Iterator[None]:
    """Where memory runs out in the block, which halving a batch does not help, TrainingError tells at what `work`."""
    try:
        yield
    except Exception as error:
        if not ran_out(error):
            raise
        raise TrainingError(f"{work}: the memory of rank {rank} does not suffice", hint) from error
