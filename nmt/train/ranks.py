"""The processes that train one model together, and all that one of them knows of the others.

Each holds the whole model and plans the same updates. It computes a part of every update; the gradients are added up
(gradients.py), and all take the same step. Rank 0 leads: it alone writes and shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Literal, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from nmt.batches.ahead import Update
from nmt.checkpoint.device import choose
from nmt.errors import NmtError, TrainingError
from nmt.model.seq2seq import Seq2Seq
from nmt.train.contact import Contact, Place
from nmt.train.gradients import Gradients, Sums
from nmt.train.launch import Seat
from nmt.train.loss import Objective
from nmt.train.meeting import meet
from nmt.train.seeds import derive

T = TypeVar("T")

GATHERING = timedelta(minutes=30)  # in which all processes of a start must have come
LIMIT = timedelta(minutes=10)  # of waiting for a process that hangs; one that has died is noticed at once
PATIENCE = timedelta(days=7)  # of waiting for rank 0 to begin the training, since it makes the data alone


class Ranks:
    """A process alone: nothing to share, nobody to ask. What many processes do, `Group` does."""

    rank, size = 0, 1
    spreads = False
    """Whether each process keeps only a part of the model."""

    @property
    def leads(self) -> bool:
        """Whether this process writes and shows."""
        return self.rank == 0

    def call(self) -> bool:
        """Begin to train, together: rank 0 calls the others, who wait for that. False: there is nothing to train."""
        return True

    def part(self) -> None:
        """Training is over, and everyone goes on, or ends, alone."""

    def place(self, device: str) -> torch.device:
        """Where this process computes, if the recipe says `device`. Raises NmtError for one that isn't there."""
        return choose(device)

    def neighbours(self, device: torch.device) -> int:
        """How many processes, this one included, share the memory of its device."""
        return 1

    def share(self, update: Update) -> Update:
        """This process's part of an update: whole batches as far as they go round, and some rows of each other one.

        Never empty, so that all have something to wait for each other with: at the least a batch of no rows.
        """
        return share(update, self.rank, self.size)

    @contextmanager
    def at(self, step: int, epoch: int, update: Update) -> Iterator[None]:
        """Within the block this update is computed: what goes wrong in it is told with its place."""
        place = Place(step, epoch, [share(update, rank, self.size) for rank in range(self.size)])
        try:
            yield
        except Exception as error:
            error.add_note(f"rank {self.rank} of {self.size}, {place.of(self.rank)}")
            raise

    def spread(self, model: Seq2Seq) -> None:
        """Keep only a part of the model, where that is what these processes do. Its weights must be known by then."""

    def assembled(self, model: Seq2Seq) -> AbstractContextManager[None]:
        """Within it, the whole model is here to translate with."""
        return nullcontext()

    def objective(self, model: Seq2Seq, make: Callable[[Seq2Seq], nn.Module] = Objective) -> nn.Module:
        """The model's loss as a module."""
        return make(model)

    def gradients(self, model: Seq2Seq) -> Gradients:
        """What makes one gradient of those of all processes."""
        return Gradients()

    def waiting(self) -> AbstractContextManager[None]:
        """Around other people's code that may wait for the others."""
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

    def gather(self, value: T) -> list[T]:
        """Every process's value, by rank."""
        return [value]

    def draw(self, step: int) -> None:
        """Random numbers for an update, where they don't go on from those of the one before."""


class Group(Ranks):
    """One of many processes. Its methods are called by all of them, in the same order. They raise LostContact."""

    def __init__(self, seat: Seat, device: torch.device, seed: int, contact: Contact) -> None:
        self.rank, self.size = seat.rank, seat.size
        self.device = device
        self.seed = seed
        self.contact = contact
        self.parted = False
        self._here = seat.here
        self._threads = torch.get_num_threads()
        self._patient = dist.new_group(backend="gloo", timeout=PATIENCE)
        self._sums: tuple[Seq2Seq, Sums] | None = None

    def call(self) -> bool:
        """Rank 0 calls; the others wait. The processes of one machine share its processors."""
        called = self._called(self.leads)
        if called:
            torch.set_num_threads(max(1, self._threads // self._here))
            self.contact.watch((1 if self.device.type == "cuda" else 2) * self.contact.limit)
        else:
            self.part()
        return called

    def part(self) -> None:
        """Close the connections; the processors are no longer shared."""
        self.parted = True
        self.contact.close()
        if self._sums:
            self._sums[1].close()
        self._sums = None
        torch.set_num_threads(self._threads)
        dist.destroy_process_group()

    def dismiss(self) -> None:
        """Unless there was a training, and it is over, let the others go, who wait for a call."""
        if not self.parted:
            self._called(False)
            self.part()

    @contextmanager
    def at(self, step: int, epoch: int, update: Update) -> Iterator[None]:
        """Also for the message when another process is lost there."""
        self.contact.place = Place(step, epoch, [share(update, rank, self.size) for rank in range(self.size)])
        with super().at(step, epoch, update):
            yield

    def place(self, device: str) -> torch.device:
        """One GPU each, or the processor for all."""
        return self.device

    def neighbours(self, device: torch.device) -> int:
        """All those on this machine, where they compute on its processor."""
        return self._here if device.type == "cpu" else 1

    def gradients(self, model: Seq2Seq) -> Gradients:
        """The same each time, since it listens to the parameters; at first it gives all those of rank 0."""
        if self._sums is None or self._sums[0] is not model:
            parameters = list(model.parameters())
            with self.contact():
                for parameter in parameters:
                    dist.broadcast(parameter.detach(), src=0)
            self._sums = model, Sums(parameters, self.contact)
        return self._sums[1]

    def waiting(self) -> AbstractContextManager[None]:
        """Turns what torch raises there about the others into LostContact."""
        return self.contact()

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all processes, as a new tensor with the same bits in each."""
        total = values.clone()
        with self.contact():
            dist.all_reduce(total)
            if total.is_cuda:
                torch.cuda.synchronize(total.device)  # whoever asks wants to know, and here a wait has its limit
        return total

    def agree(self, seconds: float, reason: str | None) -> tuple[float, str | None]:
        """One short message for each step; words are exchanged only when somebody has some."""
        both = torch.tensor([seconds, reason is not None], dtype=torch.float64)
        with self.contact():
            dist.all_reduce(both, dist.ReduceOp.MAX)
            if not both[1]:
                return float(both[0]), None
            reasons: list[str | None] = [None] * self.size
            dist.all_gather_object(reasons, reason)
        return float(both[0]), next(given for given in reasons if given)

    def first(self, make: Callable[[], T]) -> T:
        """What rank 0 makes, sent to all."""
        made = [make()] if self.leads else [None]
        with self.contact():
            dist.broadcast_object_list(made, src=0)
        return made[0]  # type: ignore[return-value]

    def gather(self, value: T) -> list[T]:
        """Every process's value, by rank, in each of them."""
        values: list[T | None] = [None] * self.size
        with self.contact():
            dist.all_gather_object(values, value)
        return values  # type: ignore[return-value]

    def draw(self, step: int) -> None:
        """Ranks beyond the first draw anew from (seed, rank, step): so only rank 0's generator need be saved."""
        if not self.leads:
            torch.manual_seed(derive(self.seed, f"dropout {self.rank} {step}"))

    def _called(self, calls: bool) -> bool:
        """Whether rank 0 `calls`, for which the others wait as long as it takes."""
        called = torch.tensor([calls])
        with self.contact():
            dist.broadcast(called, src=0, group=self._patient)
        return bool(called)


def share(update: Update, rank: int, size: int, keep_empty: bool = False) -> Update:
    """The part of an update that `rank` of `size` processes computes: see Ranks.share."""
    whole = len(update) - len(update) % size
    parts = (rows[rank::size] for rows in update[whole:])
    mine = [*update[rank:whole:size], *parts]
    return [rows for rows in mine if len(rows) or keep_empty] or [update[0][:0]]


@contextmanager
def join(
    seat: Seat, device: str, seed: int, limit: timedelta = LIMIT, sharding: Literal["none", "full"] = "none"
) -> Iterator[Group]:
    """This process as one of those it was started with; they wait for each other here.

    With full `sharding` each keeps a part of the model, otherwise all of it.
    Within the block a process that hangs is waited for as long as `limit`. When the block ends and rank 0 hasn't called
    the others, it lets them go. Raises NmtError for a missing GPU.
    """
    place = _own(device, seat)
    backend = "gloo" if place.type == "cpu" else "cpu:gloo,cuda:nccl"
    if place.type == "cuda":
        torch.cuda.set_device(place)
    most = limit if place.type == "cpu" else 2 * limit  # NCCL kills without a word, so the watch must come before it
    try:
        store = meet(seat, GATHERING)
        dist.init_process_group(backend, store=store, rank=seat.rank, world_size=seat.size, timeout=most)
        group = _kind(sharding)(seat, place, seed, Contact(seat.rank, seat.size, store, limit))
    except (RuntimeError, ValueError) as error:
        raise TrainingError(
            f"rank {seat.rank} of {seat.size} cannot reach the other processes: {str(error).splitlines()[0]}",
            "MASTER_ADDR and MASTER_PORT must name rank 0's machine and a free port of it, as torchrun sees to",
        ) from error
    yield group
    group.dismiss()


def _kind(sharding: str) -> type[Group]:
    if sharding == "none":
        return Group
    from nmt.train.sharding import Sharded

    return Sharded


def _own(device: str, seat: Seat) -> torch.device:
    chosen = choose(device)
    if chosen.type != "cuda":
        return chosen
    if chosen.index is not None:
        raise NmtError(f"train.device = {device}: {seat.size} processes need a GPU each", "train.device = cuda")
    return choose(f"cuda:{seat.local}")
