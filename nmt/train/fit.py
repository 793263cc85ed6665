"""The training loop.  B batch · S source · T target · D width"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from nmt.batches.batch import Batch
from nmt.errors import TrainingError
from nmt.events import Event
from nmt.model.layer_drop import layers_left_out
from nmt.model.seq2seq import Seq2Seq
from nmt.train.coins import toss
from nmt.train.data import Pairs
from nmt.train.ema import Ema
from nmt.train.events import Saved, Skipped, Step, Stopped, Validation
from nmt.train.objective import objective_of
from nmt.train.optimizer import set_rate
from nmt.train.ranks import Ranks
from nmt.train.rules import Rules
from nmt.train.schedule import Schedule
from nmt.train.state import State
from nmt.train.store import Store
from nmt.train.validate import Scores

ALONE = Ranks()


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
) -> Iterator[Event]:
    """Train `model` from `state` until one of the rules ends it, yielding what happens.

    Whatever is due after an update is done before the next is taken, so a run that was cut off anywhere goes on as if
    it had not been. The last update is always saved, and validated unless `should_stop` gave a reason to end now.
    All `ranks` run this side by side and decide alike; only rank 0 has a `store`, and `evaluate` tells all the same.
    `ema` follows the weights; `store` and `evaluate` know of it by themselves.
    Raises TrainingError after too many updates in a row that aren't finite, and OutputError when a save fails.
    """
    begun, saved = clock() - state.elapsed, state.step
    layers = list(layers_left_out(model))
    while True:
        state.elapsed, asked = ranks.agree(clock() - begun, should_stop())
        over = rules.over(state)
        if store and saved < state.step and (asked or over or state.step % rules.save_every == 0):
            saved = state.step
            yield Saved(store.save(model, optimizer, state), saved)
        if evaluate and not asked and state.validated < state.step and (over or state.step % rules.validate_every == 0):
            scores = evaluate()
            best = state.judge(scores.by(rules.best_by), lower_is_better=rules.best_by == "loss")
            yield Validation(state.step, scores.loss, scores.perplexity, scores.bleu, scores.chrf, best, scores.sets)
            state.elapsed, asked = ranks.agree(clock() - begun, should_stop())
            over = over or rules.over(state)
            if store and saved < state.step and (asked or over or best):
                saved = state.step
                yield Saved(store.save(model, optimizer, state), saved)
            if store and saved == state.step:
                store.note(state, scores, rules.best_by)
        if store and saved == state.step:
            store.prune(state)
        if asked or over:
            done = bool(over) and (evaluate is None or state.validated == state.step)
            yield Stopped((over if done else asked) or "", state.step, interrupted=not done)
            return

        updates = updates_of(data, state.epoch)
        rows, rate = updates[state.update], schedule(state.step - state.skipped + 1)
        start = clock()
        batches = [data.load(some) for some in ranks.share(rows)]
        ranks.draw(state.step)
        toss(layers, rules.seed, state.step)
        outcome = learn(model, optimizer, batches, rate=rate, rules=rules, pad=data.pad, ranks=ranks)
        where, place = (state.step + 1, state.epoch + 1), state.update
        state.advance(len(updates))
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


@dataclass(frozen=True)
class Outcome:
    """What one update did. Losses are means over its target tokens; `finite` is False where nothing was changed."""

    loss: float
    nll: float
    tokens: int
    norm: float
    finite: bool


def learn(
    model: Seq2Seq,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[Batch],
    *,
    rate: float,
    rules: Rules,
    pad: int,
    ranks: Ranks = ALONE,
) -> Outcome:
    """One update: the gradient of the batches' total loss over their total target tokens, however they were cut.

    `batches` are this process's part of it; the loss and the tokens are those of all `ranks`. When the loss or the
    gradient isn't finite, weights and moments stay as they are.
    """
    device = model.output_weight_VD.device
    tokens = int(ranks.sum(torch.tensor(sum(batch.tokens for batch in batches))))
    objective = ranks.objective(model, objective_of(rules))
    sums = torch.zeros(2, dtype=torch.float64, device=device)
    model.train()
    for number, batch in enumerate(batches, 1):
        with ranks.adding_up(objective, last=number == len(batches)):
            with torch.autocast(device.type, torch.bfloat16, enabled=rules.precision == "bfloat16"):
                loss, nll = objective(batch.to(device), rules.label_smoothing, pad)
            (loss * ranks.size / tokens).backward()  # ranks.size: the gradients' mean over ranks shall be a sum
        sums += torch.stack((loss.detach(), nll))
    parameters = [p for p in model.parameters() if p.grad is not None]
    norm = get_total_norm([p.grad for p in parameters if p.grad is not None])
    sums = ranks.sum(torch.cat((sums, norm.double()[None])))
    mean_loss, mean_nll, size = (sums / sums.new_tensor([tokens, tokens, ranks.size])).tolist()
    finite = bool(np.isfinite([mean_loss, size]).all())
    if finite:
        if rules.clip_norm is not None and size > rules.clip_norm:
            clip_grads_with_norm_(parameters, rules.clip_norm, norm)
        set_rate(optimizer, rate)
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return Outcome(mean_loss, mean_nll, tokens, size, finite)


def updates_of(data: Pairs, epoch: int) -> list[list[np.ndarray]]:
    """The epoch's updates. Raises TrainingError when there are none."""
    updates = data.updates(epoch)
    if not updates:
        raise TrainingError(
            "no training pair is left: all are longer than the limits, or there are none",
            "raise train.max_source_tokens, train.max_target_tokens or train.batch_tokens",
        )
    return updates


def _bear(state: State, rules: Rules) -> None:
    if state.skipped_in_a_row >= rules.max_bad_steps:
        raise TrainingError(
            f"{state.skipped_in_a_row} updates in a row, up to step {state.step}, had a loss or gradient that is not "
            f"finite (train.max_bad_steps = {rules.max_bad_steps}); no weight was changed by them",
            "lower the learning rate, set train.clip_norm = 1.0 or train.precision = float32, and run again: "
            "training goes on from the last checkpoint",
        )


def _lines(rows: Sequence[np.ndarray]) -> tuple[int, ...]:
    return tuple(int(row) for some in rows for row in some)[:100]
