"""One update, from batches to changed weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from nmt.batches.batch import Batch
from nmt.checkpoint.tensors import whole
from nmt.errors import TrainingError
from nmt.model.seq2seq import Seq2Seq
from nmt.train.objective import objective_of
from nmt.train.optimizer import set_rate
from nmt.train.ranks import Ranks
from nmt.train.room import Room, padded, ran_out
from nmt.train.rules import Rules

ALONE = Ranks()


@dataclass(frozen=True)
class Outcome:
    """What one update did. Losses are means over its target tokens; `finite` is False where nothing was changed."""

    loss: float
    nll: float
    tokens: int
    norm: float
    finite: bool
    too_large: tuple[tuple[int, int], ...] = ()
    """Batches that did not fit into memory and were halved: the rank, and the padded tokens."""


def learn(
    model: Seq2Seq,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[Batch],
    *,
    rate: float,
    rules: Rules,
    pad: int,
    ranks: Ranks = ALONE,
    room: Room | None = None,
) -> Outcome:
    """One update: the gradient of the batches' total loss over their total target tokens, however they were cut.

    `batches` are this process's part of it; the loss and the tokens are those of all `ranks`. When the loss or the
    gradient isn't finite, weights and moments stay as they are. When memory runs out on any of the ranks, all begin the
    update again, and the batch that was too large is halved; `room` keeps how large that was.
    Raises TrainingError for a single pair that doesn't fit.
    """
    room = room or Room()
    tokens = int(ranks.sum(torch.tensor(sum(batch.tokens for batch in batches))))
    too_large: list[tuple[int, int]] = []
    model.train()
    while True:
        sums, unfit = add_up(model, room.cut(batches, pad), tokens=tokens, rules=rules, pad=pad, ranks=ranks)
        parameters = [p for p in model.parameters() if p.grad is not None]
        with ranks.waiting():
            norm = get_total_norm([p.grad for p in parameters if p.grad is not None])
            whole_norm = whole(norm)
        halt = sums.new_full((1,), unfit is not None)  # filled there; numbers of a list would be waited for
        totals = ranks.sum(torch.cat((sums, halt, whole_norm.to(sums)[None]))).tolist()  # the one wait of an update
        if not totals[2]:
            break
        optimizer.zero_grad(set_to_none=True)
        too_large += make_room(room, unfit, ranks)
    mean_loss, mean_nll, size = totals[0] / tokens, totals[1] / tokens, totals[3] / ranks.size
    finite = bool(np.isfinite([mean_loss, size]).all())
    if finite:
        if rules.clip_norm is not None and size > rules.clip_norm:
            clip_grads_with_norm_(parameters, rules.clip_norm, norm)
        set_rate(optimizer, rate)
        with ranks.waiting():
            optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return Outcome(mean_loss, mean_nll, tokens, size, finite, tuple(too_large))


def add_up(
    model: Seq2Seq, batches: Sequence[Batch], *, tokens: int, rules: Rules, pad: int, ranks: Ranks
) -> tuple[Tensor, Batch | None]:
    """Leaves the gradient of all `ranks` in the parameters; the summed losses of these batches, of both kinds.

    Also the batch that memory ran out in, if any: then losses and gradients are worth nothing.
    """
    sums = torch.zeros(2, dtype=torch.float64, device=model.output_weight_VD.device)
    objective, gradients = ranks.objective(model, objective_of(rules)), ranks.gradients(model)
    unfit: Batch | None = None
    gradients.begin()
    for number, batch in enumerate(batches, 1):
        try:
            with gradients.passing(last=number == len(batches)):
                _pass(objective, batch, sums, tokens / gradients.scale, rules, pad)
        except (RuntimeError, MemoryError) as error:
            if not ran_out(error):
                raise
            if not gradients.heals:
                raise TrainingError(
                    f"a batch of {padded(batch):,} tokens does not fit into the memory of rank {ranks.rank}, and where "
                    "the model is spread over the processes (train.sharding) it cannot be halved",
                    "lower train.batch_tokens, and raise train.accumulate instead",
                ) from error
            unfit = batch
            break
    gradients.finish()
    return sums, unfit


def _pass(objective: nn.Module, batch: Batch, sums: Tensor, divisor: float, rules: Rules, pad: int) -> None:
    """Forward and backward. A function of its own, so that what it held is free when memory runs out in it."""
    with torch.autocast(sums.device.type, torch.bfloat16, enabled=rules.precision == "bfloat16"):
        loss, nll = objective(batch.to(sums.device), rules.label_smoothing, pad)
    (loss / divisor).backward()
    sums += torch.stack((loss.detach(), nll))


def make_room(room: Room, unfit: Batch | None, ranks: Ranks) -> Iterable[tuple[int, int]]:
    """After memory ran out somewhere: the ranks where it did, each with the padded tokens of what was too large."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if unfit is not None:
        room.learn(unfit)
    found = ranks.gather(padded(unfit) if unfit is not None else None)
    return [(rank, size) for rank, size in enumerate(found) if size is not None]
