"""Several processes for one training: starting them, or being one of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import typer

from . import show

if TYPE_CHECKING:
    from nmt.recipe import Recipe
    from nmt.train.launch import Seat
    from nmt.train.ranks import Ranks


def seat(processes: int | None) -> Seat | None:
    """This process's place among those it was started with, None if alone; `processes` are those asked for."""
    from nmt.train.launch import Seat

    found = Seat.read(os.environ)
    if found and processes and processes != found.size:
        raise typer.BadParameter(f"--processes {processes}: this is already one of {found.size} processes")
    return found


def launch(processes: int, arguments: Sequence[str]) -> None:
    """Run `nmt` with these arguments as so many processes, and end as the first of them does."""
    from nmt.train.launch import launch

    flags = [*["--debug"] * ("--debug" in sys.argv), *["--quiet"] * show.is_quiet()]
    status = launch([sys.executable, "-P", "-m", "nmt", *arguments, *flags], processes, os.environ)
    if status:
        raise typer.Exit(status)


@contextmanager
def joined(seat: Seat | None, recipe: Recipe) -> Iterator[Ranks | None]:
    """The processes at whose side this one runs `recipe`; None for one alone, which needs nothing of this."""
    if seat is None:
        yield None
        return
    from nmt.train.launch import heed_launcher
    from nmt.train.ranks import join

    if seat.watched:
        heed_launcher(sys.stdin.fileno())
    train = recipe.train
    with join(seat, train.device, recipe.seed, timedelta(minutes=train.wait_minutes), train.sharding) as ranks:
        yield ranks
