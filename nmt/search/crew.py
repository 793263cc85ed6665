"""Who computes batches: a processor's one solver for all threads, or one on each of several GPUs."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from queue import SimpleQueue
from typing import TYPE_CHECKING

import torch

from nmt.errors import SettingsError
from nmt.model.seq2seq import Seq2Seq, Stepper

if TYPE_CHECKING:
    from nmt.search.solve import Solver


def devices(first: torch.device, workers: int | None, count: int) -> list[torch.device]:
    """Where `workers` compute, by default one, of whom the first has the `first` of `count` GPUs.

    On a processor all share it. Raises SettingsError for more workers than GPUs.
    """
    if first.type != "cuda":
        return [first]
    index, workers = first.index or 0, workers or 1
    if index + workers > count:
        beginning = f", of which {index} stand before {first}" if index else ""
        raise SettingsError(
            f"workers = {workers}: each has a GPU of its own, and this machine has {count}{beginning}",
            f"take --workers {max(count - index, 1)}",
        )
    return [first, *(torch.device("cuda", index + i) for i in range(1, workers))]


class Crew:
    """Copies of a solver on other GPUs, made when they are first wanted, and again when the model has changed."""

    def __init__(self) -> None:
        self.copies: dict[torch.device, Solver] = {}
        self.copied: object = None

    def of(self, solver: Solver, workers: int | None) -> list[Solver]:
        """The solvers of so many workers, `solver` the first. Raises SettingsError for more workers than GPUs."""
        count = torch.cuda.device_count() if solver.device.type == "cuda" else 0
        return self.on(solver, devices(solver.device, workers, count))

    def on(self, solver: Solver, places: Sequence[torch.device]) -> list[Solver]:
        """`solver`, and copies on all places but the first."""
        if len(places) > 1 and (state := _state(solver.model)) != self.copied:
            self.copies, self.copied = {}, state
        for place in places[1:]:
            if place not in self.copies:
                self.copies[place] = replace(solver, model=copy.deepcopy(solver.model).to(place), device=place)
        return [solver, *(self.copies[place] for place in places[1:])]


class Turns:
    """Solvers and their steppers for batches side by side: on GPUs one batch each, on a processor all share one."""

    def __init__(self, pairs: Sequence[tuple[Solver, Stepper]]) -> None:
        self.shared = pairs[0] if pairs[0][0].device.type != "cuda" and len(pairs) == 1 else None
        self.free: SimpleQueue[tuple[Solver, Stepper]] = SimpleQueue()
        for pair in pairs:
            self.free.put(pair)

    @contextmanager
    def one(self) -> Iterator[tuple[Solver, Stepper]]:
        """A solver that is free, with its stepper, for one batch."""
        if self.shared is not None:
            yield self.shared
            return
        pair = self.free.get()
        try:
            with pair[0].busy, torch.cuda.device(pair[0].device) if pair[0].device.type == "cuda" else nullcontext():
                yield pair
        finally:
            self.free.put(pair)


def _state(model: Seq2Seq) -> object:
    """What is another after every change of a weight."""
    return [(weight.data_ptr(), weight._version) for weight in model.parameters()]
