"""What a training leaves to be read: the journal, learning curves, validation translations, TensorBoard's files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nmt.train.examples as tables
from nmt.analysis.curves import Curves, can_draw
from nmt.checkpoint import layout
from nmt.errors import NmtError
from nmt.events import Caution, Event, Notice
from nmt.recipe import Recipe
from nmt.stages.stage import RunFolder
from nmt.train.board import Board, check_tensorboard
from nmt.train.crowd import Crowd, usable
from nmt.train.events import Step, Stopped, Validation
from nmt.train.journal import Journal, made_once, read_journal
from nmt.train.state import State
from nmt.wording import counted, span

if TYPE_CHECKING:
    from nmt.train.ranks import Ranks
    from nmt.train.validate import Validator


def recorded(
    events: Iterator[Event],
    recipe: Recipe,
    run: RunFolder,
    state: State,
    measure: Validator,
    ranks: Ranks,
    on_processor: bool,
) -> Iterator[Event]:
    """`events` of a training from `state`, which the first process records in the run folder."""
    if not ranks.leads:
        for event in events:
            if isinstance(event, Stopped):
                ranks.part()
            yield event
        return
    with closing(Record(recipe, run, state, measure)) as record:
        yield from _watched(events, record, ranks, on_processor)


def _watched(events: Iterator[Event], record: Record, ranks: Ranks, on_processor: bool) -> Iterator[Event]:
    """`events`, each recorded before it is told, and what there is to say of the records and of the processor."""
    import torch

    crowd = Crowd(usable(torch.get_num_threads())) if on_processor else None
    for event in events:
        if isinstance(event, Stopped):
            ranks.part()
        yield from record.take(event)
        yield event
        if crowd and not isinstance(event, Step):
            crowd.pass_over()
        elif crowd and (told := crowd.after_update()):
            yield Notice(told)


class Record:
    """The records of one training that begins, or goes on, in `state`; `measure` makes its validations.

    Without the journal nothing goes on. All else is for people alone: where it can't be written, training says so once
    and goes on.
    """

    def __init__(self, recipe: Recipe, run: RunFolder, state: State, measure: Validator) -> None:
        self.recipe = recipe
        self.run = run
        self.state = state
        self.measure = measure
        self.journal = Journal(run.journal)
        self.journal.rewind(state.step, state.validated)
        tables.rewind_examples(run.validation, state.validated)
        self.begun = state.step, state.validated
        self.board: Board | None = None  # which is opened where a fault is told and ends nothing
        if recipe.train.tensorboard:
            check_tensorboard()
        drawn = recipe.train.curves and can_draw()
        self.curves = Curves(run.journal, run.curves, recipe.name) if drawn else None
        self._failed: set[str] = set()

    def take(self, event: Event) -> Iterator[Event]:
        """Record `event`, and tell what could not be recorded; at the end, what came of it all and where it lies."""
        entries = self.journal.write(event)
        if self.recipe.train.tensorboard and entries:
            yield from self._try("TensorBoard's files", self._to_board, entries)
        if isinstance(event, Validation):
            yield from self._try("validation translations", self._examples, event.step)
        if self.curves and (isinstance(event, Stopped) or (isinstance(event, Validation) and self.curves.due())):
            yield from self._try("learning curves", self.curves.draw)
        if isinstance(event, Stopped) and not event.interrupted:
            yield from self._told()

    def close(self) -> None:
        """Nothing more is to be recorded."""
        if self.board:
            with suppress(OSError):  # which was told when it was first met
                self.board.close()

    def _to_board(self, entries: Sequence[Mapping[str, Any]]) -> None:
        self.board = self.board or Board(self.run.tensorboard, *self.begun)
        for entry in entries:
            self.board.write(entry)

    def _examples(self, step: int) -> None:
        translations, count = self.measure.translations, self.recipe.train.valid_examples
        tables.write_examples(self.run.validation, step, self.measure.sets, translations, count)

    def _try(self, what: str, work: Callable[..., object], *arguments: object) -> Iterator[Event]:
        try:
            work(*arguments)
        except Exception as error:  # whatever another program's package raises, it is no reason to end a training
            if what not in self._failed:
                self._failed.add(what)
                reason = error.problem if isinstance(error, NmtError) else f"{type(error).__name__}: {error}"
                yield Caution(f"train: {what} are not written: {reason}")

    def _told(self) -> Iterator[Event]:
        entries = made_once(read_journal(self.run.journal))
        yield Notice(summary(entries, self.state, self.recipe.train.best_by, self.run.checkpoints))
        places = {
            "learning curves": self.run.curves,
            "validation translations": tables.table_of(self.run.validation, self.state.validated),
            "TensorBoard's files": self.run.tensorboard,
        }
        lie = [f"{what} in {path}" for what, path in places.items() if path.exists()]
        if lie:
            yield Notice(f"train: {', '.join(lie)}")
        if self.recipe.train.curves and not self.curves:
            drawn = f'with matplotlib (pip install "nmt[plots]"), or by nmt report {self.run.path} without it'
            yield Notice(f"train: learning curves are drawn {drawn}")


def summary(entries: Sequence[Mapping[str, Any]], state: State, best_by: str, checkpoints: Path) -> str:
    """A training in one line: updates, time, speed, the best validation, and where the model lies."""
    steps = [entry for entry in entries if entry["event"] == "step" and entry.get("rate") and entry.get("tokens")]
    parts = [f"{counted(state.step, 'update')} in {span(state.elapsed)}"]
    if seconds := sum(entry["tokens"] / entry["rate"] for entry in steps):
        parts.append(f"{sum(entry['tokens'] for entry in steps) / seconds:,.0f} tokens/s")
    if state.best is not None and state.best_step is not None:
        name, digits = {"bleu": ("BLEU", 2), "chrf": ("chrF", 2), "loss": ("validation loss", 3)}[best_by]
        parts.append(f"best {name} {state.best:.{digits}f} at update {state.best_step:,}")
    if model := layout.pointed(checkpoints, layout.BEST) or layout.pointed(checkpoints, layout.LAST):
        parts.append(f"model in {model}")
    return f"train: {', '.join(parts)}"
