"""The training loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from nmt.checkpoint.layout import step_name
from nmt.errors import TrainingError
from nmt.events import Event
from nmt.model.layer_drop import layers_left_out
from nmt.model.seq2seq import Seq2Seq
from nmt.train.coins import toss
from nmt.train.data import Pairs
from nmt.train.ema import Ema
from nmt.train.events import Halved, Saved, Skipped, Step, Stopped, Validation
from nmt.train.loader import Loader
from nmt.train.memory import give_back
from nmt.train.ranks import Ranks
from nmt.train.room import Room, memory_for
from nmt.train.rules import Rules
from nmt.train.schedule import Schedule
from nmt.train.state import State
from nmt.train.store import Store
from nmt.train.update import ALONE, learn
from nmt.train.validate import Scores
from nmt.wording import counted

_TRIM_EVERY = 10  # updates; it takes about a hundredth of their time


def fit(
    model: Seq2Seq,
    optimizer: torch.optim.Optimizer,
    data: Pairs,
    state: State,
    *,
    schedule: Schedule,
    rules: Rules,
    evaluate: Callable[[], Scores] | None = None,
    store: Store | None = None,
    should_stop: Callable[[], str | None] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
    ranks: Ranks = ALONE,
    ema: Ema | None = None,
    ahead: bool | None = None,
) -> Iterator[Event]:
    """Train `model` from `state` until one of the rules ends it, yielding what happens.

    Whatever is due after an update is done before the next is taken, so a run that was cut off anywhere goes on as if
    it had not been. The last update is always saved, and validated unless `should_stop` gave a reason to end now.
    All `ranks` run this side by side and decide alike; only rank 0 has a `store`, and `evaluate` tells all the same.
    `ema` follows the weights; `store` and `evaluate` know of it by themselves. The next update's batches are read
    `ahead`, in a thread, by default where the model is on a GPU.
    Raises TrainingError after too many updates in a row that aren't finite, and OutputError when a save fails.
    """
    begun, saved, room = clock() - state.elapsed, state.step, Room()
    layers, on_gpu = list(layers_left_out(model)), model.output_weight_VD.device.type == "cuda"
    loader = Loader(data.load, ranks.share, ahead=on_gpu if ahead is None else ahead, pinned=on_gpu)
    while True:
        state.elapsed, asked = ranks.agree(clock() - begun, should_stop())
        over = rules.over(state)
        if store and saved < state.step and (asked or over or state.step % rules.save_every == 0):
            saved = state.step
            yield Saved(_save(store, model, optimizer, state, ranks), saved)
        if evaluate and not asked and state.validated < state.step and (over or state.step % rules.validate_every == 0):
            with memory_for(f"validation at step {state.step}", ranks.rank):
                scores = evaluate()
            best = state.judge(scores.by(rules.best_by), lower_is_better=rules.best_by == "loss")
            yield Validation(state.step, scores.loss, scores.perplexity, scores.bleu, scores.chrf, best, scores.sets)
            state.elapsed, asked = ranks.agree(clock() - begun, should_stop())
            over = over or rules.over(state)
            if store and saved < state.step and (asked or over or best):
                saved = state.step
                yield Saved(_save(store, model, optimizer, state, ranks), saved)
            if store and saved == state.step:
                store.note(state, scores, rules.best_by)
        if store and saved == state.step:
            store.prune(state)
        if asked or over:
            done = bool(over) and (evaluate is None or state.validated == state.step)
            yield Stopped((over if done else asked) or "", state.step, interrupted=not done)
            return

        where, place, start = (state.step + 1, state.epoch + 1), state.update, clock()
        with memory_for(f"step {where[0]}", ranks.rank):
            updates = _updates_at(data, state)
        rows, rate = updates[state.place], schedule(state.step - state.skipped + 1)
        with memory_for(f"step {where[0]}", ranks.rank), ranks.at(*where, rows):
            batches = loader.take(updates, state.place)
            ranks.draw(state.step)
            toss(layers, rules.seed, state.step)
            outcome = learn(model, optimizer, batches, rate=rate, rules=rules, pad=data.pad, ranks=ranks, room=room)
        for rank, size in outcome.too_large:
            yield Halved(where[0], rank, size)
        state.advance(len(updates), data.groups)
        if state.step % _TRIM_EVERY == 0:
            give_back()
        if outcome.finite:
            state.skipped_in_a_row = 0
            if ema:
                ema.update(state.step - state.skipped)
            speed = outcome.tokens / max(clock() - start, 1e-9)
            yield Step(*where, outcome.loss, outcome.tokens, speed, rate, outcome.norm, outcome.nll, rules.steps)
        else:
            state.skipped, state.skipped_in_a_row = state.skipped + 1, state.skipped_in_a_row + 1
            yield Skipped(*where, place, state.skipped_in_a_row, _lines(rows))
            _bear(state, rules)


def _save(store: Store, model: Seq2Seq, optimizer: torch.optim.Optimizer, state: State, ranks: Ranks) -> Path:
    with memory_for(f"saving step {state.step}", ranks.rank):
        return store.save(model, optimizer, state)


def updates_of(data: Pairs, epoch: int, group: int) -> list[list[np.ndarray]]:
    """The updates of a group of an epoch. Raises TrainingError when there are none."""
    updates = data.updates(epoch, group)
    if not updates:
        raise TrainingError(
            "no training pair is left: all are longer than the limits, or there are none",
            "raise train.max_source_tokens, train.max_target_tokens or train.batch_tokens",
        )
    return updates


def _updates_at(data: Pairs, state: State) -> list[list[np.ndarray]]:
    """The updates of the group that the state is at. Raises TrainingError also where it is beyond them."""
    updates = updates_of(data, state.epoch, state.group) if state.group < data.groups else []
    if state.place >= len(updates):
        raise TrainingError(
            f"the state of step {state.step} is damaged: epoch {state.epoch + 1} of this data has no update "
            f"{state.update + 1}",
            f"remove {step_name(state.step)} from the folder of checkpoints to go on from the one before",
        )
    return updates


def _bear(state: State, rules: Rules) -> None:
    if state.skipped_in_a_row >= rules.max_bad_steps:
        updates = counted(state.skipped_in_a_row, "update")
        raise TrainingError(
            f"{updates} in a row, up to step {state.step}, had a loss or gradient that is not "
            f"finite (train.max_bad_steps = {rules.max_bad_steps}); no weight was changed by them",
            "lower the learning rate, set train.clip_norm = 1.0 or train.precision = float32, and run again: "
            "training goes on from the last checkpoint",
        )


def _lines(rows: Sequence[np.ndarray]) -> tuple[int, ...]:
    return tuple(int(row) for some in rows for row in some)[:100]
