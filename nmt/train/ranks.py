"""The processes that train one model together, and all that one of them knows of the others.

Each holds the whole model and plans the same updates. It computes a part of every update; the gradients are added up
(torch's DistributedDataParallel), and all take the same step. Rank 0 leads: it alone writes, validates and shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from nmt.checkpoint.device import choose
from nmt.errors import NmtError, TrainingError
from nmt.model.seq2seq import Seq2Seq
from nmt.train.data import Update
from nmt.train.launch import LOST, Seat
from nmt.train.loss import Objective
from nmt.train.meeting import meet
from nmt.train.seeds import derive

T = TypeVar("T")

LIMIT = timedelta(minutes=30)  # of waiting for a process that hangs; one that has died is noticed at once
PATIENCE = timedelta(days=7)  # of waiting for rank 0, which makes the data and validates alone


class LostContact(TrainingError):
    """Another process has died, or hangs."""

    status = LOST


class Ranks:
    """A process alone: nothing to share, nobody to ask. What many processes do, `Group` does."""

    rank, size = 0, 1

    @property
    def leads(self) -> bool:
        """Whether this process writes, validates and shows."""
        return self.rank == 0

    def call(self) -> bool:
        """Begin to train, together: rank 0 calls the others, who wait for that. False: there is nothing to train."""
        return True

    def part(self) -> None:
        """Training is over, and everyone goes on, or ends, alone."""

    def place(self, device: str) -> torch.device:
        """Where this process computes, if the recipe says `device`. Raises NmtError for one that isn't there."""
        return choose(device)

    def share(self, update: Update) -> Update:
        """This process's part of an update: whole batches as far as they go round, and some rows of each other one.

        Never empty, so that all have something to wait for each other with: at the least a batch of no rows.
        """
        whole = len(update) - len(update) % self.size
        parts = (rows[self.rank :: self.size] for rows in update[whole:])
        mine = [*update[self.rank : whole : self.size], *parts]
        return [rows for rows in mine if len(rows)] or [update[0][:0]]

    def objective(self, model: Seq2Seq, make: Callable[[Seq2Seq], nn.Module] = Objective) -> nn.Module:
        """The model's loss as a module whose gradient, after the last batch of an update, is the mean over ranks."""
        return make(model)

    def adding_up(self, objective: nn.Module, last: bool) -> AbstractContextManager[object]:
        """Within it, a batch goes forward and backward; after the `last` of an update the gradients are added up."""
        return nullcontext()

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all processes."""
        return values

    def agree(self, seconds: float, reason: str | None) -> tuple[float, str | None]:
        """The longest of the processes' times, and a reason to stop if any has one: the same for all."""
        return seconds, reason

    def first(self, make: Callable[[], T]) -> T:
        """What rank 0 makes; the others wait for it."""
        return make()

    def draw(self, step: int) -> None:
        """Random numbers for an update, where they don't go on from those of the one before."""


class Group(Ranks):
    """One of many processes. Its methods are called by all of them, in the same order. They raise LostContact."""

    def __init__(self, seat: Seat, device: torch.device, seed: int) -> None:
        self.rank, self.size = seat.rank, seat.size
        self.device = device
        self.seed = seed
        self.parted = False
        self._here = seat.here
        self._threads = torch.get_num_threads()
        self._patient = dist.new_group(backend="gloo", timeout=PATIENCE)
        self._wrapped: tuple[Seq2Seq, DistributedDataParallel] | None = None

    def call(self) -> bool:
        """Rank 0 calls; the others wait. The processes of one machine share its processors."""
        called = self.first(lambda: True)
        if called:
            torch.set_num_threads(max(1, self._threads // self._here))
        else:
            self.part()
        return called

    def part(self) -> None:
        """Close the connections; the processors are no longer shared."""
        self.parted = True
        self._wrapped = None
        torch.set_num_threads(self._threads)
        dist.destroy_process_group()

    def place(self, device: str) -> torch.device:
        """One GPU each, or the processor for all."""
        return self.device

    def objective(self, model: Seq2Seq, make: Callable[[Seq2Seq], nn.Module] = Objective) -> nn.Module:
        """The same wrapper each time, since it listens to the parameters; at first it gives all those of rank 0.

        Buffers are left alone: they are tables that grow, and rank 0's have grown further when it has validated.
        """
        if self._wrapped is None or self._wrapped[0] is not model:
            whole = make(model)
            tables = [name for name, _ in whole.named_buffers()]
            DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(whole, tables)
            with self._contact():
                self._wrapped = model, DistributedDataParallel(whole, gradient_as_bucket_view=True)
        return self._wrapped[1]

    @contextmanager
    def adding_up(self, objective: nn.Module, last: bool) -> Iterator[None]:
        """Gradients are added up while those of lower layers are still computed."""
        assert isinstance(objective, DistributedDataParallel)
        with self._contact(), nullcontext() if last else objective.no_sync():
            yield

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all processes, as a new tensor with the same bits in each."""
        total = values.clone()
        with self._contact():
            dist.all_reduce(total)
        return total

    def agree(self, seconds: float, reason: str | None) -> tuple[float, str | None]:
        """One short message for each step; words are exchanged only when somebody has some."""
        both = torch.tensor([seconds, reason is not None], dtype=torch.float64)
        with self._contact():
            dist.all_reduce(both, dist.ReduceOp.MAX)
            if not both[1]:
                return float(both[0]), None
            reasons: list[str | None] = [None] * self.size
            dist.all_gather_object(reasons, reason)
        return float(both[0]), next(given for given in reasons if given)

    def first(self, make: Callable[[], T]) -> T:
        """What rank 0 makes, sent to all; it may take its time."""
        made = [make()] if self.leads else [None]
        with self._contact():
            dist.broadcast_object_list(made, src=0, group=self._patient)
        return made[0]  # type: ignore[return-value]

    def draw(self, step: int) -> None:
        """Ranks beyond the first draw anew from (seed, rank, step): so only rank 0's generator need be saved."""
        if not self.leads:
            torch.manual_seed(derive(self.seed, f"dropout {self.rank} {step}"))

    @contextmanager
    def _contact(self) -> Iterator[None]:
        """Turns what torch raises about other processes into LostContact."""
        try:
            yield
        except RuntimeError as error:
            if not _of_others(error):
                raise
            raise LostContact(
                f"rank {self.rank} of {self.size} has lost contact with the other processes",
                "the message of the one that ended first says why; the same command goes on from the newest checkpoint",
            ) from error


@contextmanager
def join(seat: Seat, device: str, seed: int) -> Iterator[Group]:
    """This process as one of those it was started with; they wait for each other here.

    When the block ends and rank 0 hasn't called them, it lets the others go. Raises NmtError for a missing GPU.
    """
    place = _own(device, seat)
    backend = "gloo" if place.type == "cpu" else "cpu:gloo,cuda:nccl"
    if place.type == "cuda":
        torch.cuda.set_device(place)
    try:
        dist.init_process_group(backend, store=meet(seat, LIMIT), rank=seat.rank, world_size=seat.size, timeout=LIMIT)
        group = Group(seat, place, seed)
    except (RuntimeError, ValueError) as error:
        raise TrainingError(
            f"rank {seat.rank} of {seat.size} cannot reach the other processes: {str(error).splitlines()[0]}",
            "MASTER_ADDR and MASTER_PORT must name rank 0's machine and a free port of it, as torchrun sees to",
        ) from error
    yield group
    if not group.parted:
        group.first(lambda: False)
        group.part()


def _own(device: str, seat: Seat) -> torch.device:
    chosen = choose(device)
    if chosen.type != "cuda":
        return chosen
    if chosen.index is not None:
        raise NmtError(f"train.device = {device}: {seat.size} processes need a GPU each", "train.device = cuda")
    return choose(f"cuda:{seat.local}")


def _of_others(error: RuntimeError) -> bool:
    return isinstance(error, dist.DistError) or "gloo" in str(error) or "NCCL" in str(error)
