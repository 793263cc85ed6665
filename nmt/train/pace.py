"""How fast this machine trains: a few seconds of real updates, cut short where a whole one would take longer."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from nmt.batches.batch import Batch
from nmt.model.seq2seq import Seq2Seq
from nmt.train import memory
from nmt.train.kernels import attention_kernels
from nmt.train.room import Room, padded
from nmt.train.rules import Rules
from nmt.train.update import learn

SECONDS, FEWEST, MOST = 5.0, 3, 25  # how long updates are made, and how many of them at least and at most
WARM_TOKENS = 256  # of the first two updates, in which much is done for the first time
PART = 4  # of all the seconds, what one update may take


@dataclass(frozen=True)
class Pace:
    """What some updates took."""

    flops_a_second: float
    """Of forward and backward passes, as the caller counts them: the median over updates."""
    step_seconds: float
    """Of the optimizer's step and what belongs to it."""
    updates: int
    seconds: float
    batch_tokens: int
    """Tokens on the longer side of the largest batch, padding counted."""
    peak_bytes: int
    """The most memory that the process had, or on a GPU its tensors."""
    processor_seconds: float
    """That all threads got together, of `seconds`."""

    def update_seconds(self, flops: float) -> float:
        """How long an update of so much arithmetic takes."""
        return flops / self.flops_a_second + self.step_seconds


def measure(
    model: Seq2Seq,
    optimizer: torch.optim.Optimizer,
    updates: Iterable[Sequence[Batch]],
    *,
    rules: Rules,
    pad: int,
    flops: Callable[[Batch], float],
    seconds: float = SECONDS,
) -> Pace:
    """Make `updates` with a model and an optimizer that are not needed afterwards; `flops` counts those of a batch.

    An update that would take long has fewer of its batches, or of their rows. Raises TrainingError as `learn` does.
    """
    device = model.output_weight_VD.device
    stepping, room = Stepping(optimizer, device), Room()
    rates, steps, largest, spent, used = list[float](), list[float](), 0, 0.0, 0.0
    memory.forget_peak(device)
    with attention_kernels(device), stepping:
        for number, whole in enumerate(updates):
            warm = number < 2
            most = max(rates, default=0.0) * seconds / PART  # what was slow may have been kept from computing
            batches = (
                [cut(whole[0], pad, lambda b: padded(b) <= WARM_TOKENS)] if warm else within(whole, pad, flops, most)
            )
            start, before = time.perf_counter(), time.process_time()
            learn(model, optimizer, batches, rate=0.0, rules=rules, pad=pad, room=room)
            _finish(device)
            took, step = time.perf_counter() - start, stepping.seconds
            rates.append(sum(map(flops, batches)) / max(took - step, 1e-9))
            if warm:
                continue
            steps.append(step)
            largest, spent = max(largest, *map(padded, batches)), spent + took
            used += time.process_time() - before
            if len(steps) >= MOST or (len(steps) >= FEWEST and spent >= seconds):
                break
    rate, step = statistics.median(rates[2:]), statistics.median(steps)
    return Pace(rate, step, len(steps), spent, largest, memory.peak(device), used)


def within(batches: Sequence[Batch], pad: int, flops: Callable[[Batch], float], most: float) -> list[Batch]:
    """As many of the batches as have at most so many FLOPs together; of the first alone, as many rows."""
    taken, total = [cut(batches[0], pad, lambda batch: flops(batch) <= most)], 0.0
    if taken[0] is not batches[0]:
        return taken
    total = flops(batches[0])
    for batch in batches[1:]:
        total += flops(batch)
        if total > most:
            break
        taken.append(batch)
    return taken


def cut(batch: Batch, pad: int, fits: Callable[[Batch], bool]) -> Batch:
    """The first half of the batch, of that, and so on, until it fits or is a single row."""
    while len(batch.src_BS) > 1 and not fits(batch):
        batch = batch.halves(pad)[0]
    return batch


class Stepping:
    """Within it, `seconds` are those of the optimizer's last step."""

    def __init__(self, optimizer: torch.optim.Optimizer, device: torch.device) -> None:
        self.optimizer, self.device = optimizer, device
        self.begun, self.seconds, self.depth = 0.0, 0.0, 0

    def __enter__(self) -> None:
        self.hooks = (
            self.optimizer.register_step_pre_hook(self._before),
            self.optimizer.register_step_post_hook(self._after),
        )

    def __exit__(self, *_: object) -> None:
        for hook in self.hooks:
            hook.remove()

    def _before(self, *_: Any) -> None:
        if self.depth == 0:  # an optimizer that is made of another one tells of both steps
            _finish(self.device)
            self.begun = time.perf_counter()
        self.depth += 1

    def _after(self, *_: Any) -> None:
        self.depth -= 1
        _finish(self.device)
        self.seconds = time.perf_counter() - self.begun


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def matrix_product_speed(device: torch.device, precision: str, size: int | None = None, runs: int = 6) -> float:
    """Operations a second of a large matrix product, the best of several: what can be reached here at most."""
    size = size or (8192 if device.type == "cuda" else 2048)
    x = torch.randn(size, size, device=device, dtype=torch.bfloat16 if precision == "bfloat16" else torch.float32)
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        (x @ x)[0, 0].item()
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best
