"""Trains toys as several processes: together.py FOLDER JOBS, JOBS being a JSON list of jobs, done one after another.

A job says {"name": a folder to train or go on in, "size": processes} and may change the defaults below. Each process
leaves NAME/rank-R.json: what happened to it. All modules are loaded once; the processes are forks of this one, which do
one job after another, and others are forked for what is left when a job has failed.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import traceback
from array import array
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch._dynamo  # what every optimizer loads when it is built
from torch.nn.parallel import DistributedDataParallel
from train.toys import learned, model, optimizer, pairs, store, turning

from nmt.batches.links import Links
from nmt.errors import NmtError
from nmt.model.seq2seq import Seq2Seq
from nmt.train import contact, ranks
from nmt.train.data import Pairs
from nmt.train.ema import Ema
from nmt.train.events import Halved, Skipped, Step, Stopped, Validation
from nmt.train.fit import fit
from nmt.train.freeze import freeze
from nmt.train.guided import AlignedPairs
from nmt.train.launch import Seat
from nmt.train.loss import Objective
from nmt.train.ranks import Ranks, join
from nmt.train.rules import Guide, Rules
from nmt.train.schedule import constant
from nmt.train.state import State
from nmt.train.store import Helper
from nmt.train.validate import Scores, dealt, evaluating, mean_loss

DEFAULTS: dict[str, Any] = {
    "size": 2,
    "sharding": "none",
    "muon": False,
    "beside": False,  # whether gradients are added up by torch's DistributedDataParallel too
    "rules": {},
    "pairs": {},
    "dropout": 0.0,
    "layer_drop": 0.0,
    "positions": None,  # how many are learned, which makes the model one of several layers
    "ema": None,
    "freeze": [],
    "guide": None,
    "every": 99,  # updates between checkpoints
    "bleu": [],  # what validation gives, one after another
    "kill": None,  # [rank, step] that is killed before that step; so for the next three
    "stop": None,
    "poison": None,
    "raise": None,
    "hang": None,
    "full": None,  # [rank, step] whose disk is full from then on
    "short": None,  # [rank, step, rows] that from then on has no memory for so many rows or more
    "backward": False,  # whether that shows only in the middle of the backward pass
    "limit": 600,  # seconds that a process may hang
    "grown": False,  # whether rank 0 has read a sentence that is longer than the table of positions
    "slow": None,  # [rank, seconds that its clock takes for each look]
}


class Recording(Pairs):
    """Pairs that remember which rows were asked for."""

    seen: list[list[int]]

    def load(self, rows: np.ndarray):
        self.seen.append([int(row) for row in rows])
        return super().load(rows)


def recording(**settings: Any) -> Recording:
    plain = pairs(**settings)
    data = Recording(plain.source, plain.target, plain.order, bos=plain.bos, eos=plain.eos, pad=plain.pad)
    data.seen = []
    return data


def identity_links(data: Pairs) -> Links:
    """Every piece of every target linked to that in the same place of its source."""
    units, counts = array("i"), array("i")
    for ids in data.target:
        units.extend(place for place in range(len(ids)) for _ in range(2))
        counts.append(len(ids))
    return Links(units, counts)


def train(folder: Path, job: dict[str, Any], group: Ranks) -> dict[str, Any]:
    """Train as one of `group`, going on from what is in the folder; what happened, in plain values."""
    guide = Guide(**job["guide"]) if job["guide"] else None
    rules = Rules(**{"guide": guide, "validate_every": 3, "save_every": job["every"], **job["rules"]})
    trained = model(dropout=job["dropout"], layer_drop=job["layer_drop"], **learned(job["positions"]))
    freeze(trained, job["freeze"])
    group.spread(trained)
    learner = (turning if job["muon"] else optimizer)(trained)
    kept, data = store(folder, 99, job["every"]), recording(**job["pairs"])
    if not group.leads:
        kept = Helper(folder, kept.description, {}, every=kept.every, keep=kept.keep)
    kept.ema = ema = Ema(trained, job["ema"]) if job["ema"] else None
    linked = AlignedPairs(data, identity_links(data), None) if guide else data
    torch.manual_seed(77)
    newest = group.first(kept.newest)
    state = kept.restore(newest, trained, learner) if newest else State()
    scores, ticks = iter(job["bleu"]), iter(range(10**6))
    pace = job["slow"][1] if job["slow"] and job["slow"][0] == group.rank else 1.0

    def now(name: str) -> bool:
        return job[name] is not None and job[name] == [group.rank, state.step + 1]

    rows = 0

    def short() -> bool:
        if job["short"] is None or not trained.training:
            return False
        rank, step, most = job["short"]
        return group.rank == rank and state.step + 1 >= step and rows >= most

    def no_memory(*_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    def before(layer: torch.nn.Module, given: tuple[torch.Tensor, ...]) -> None:
        if short() and not job["backward"]:
            no_memory()

    def after(layer: torch.nn.Module, given: tuple[torch.Tensor, ...], x_BSD: torch.Tensor) -> None:
        if short() and job["backward"]:
            x_BSD.register_hook(no_memory)  # the decoder's gradients are there by then, and on their way

    def forward(src_BS, keep_BS, tgt_BT):
        nonlocal rows
        rows = len(src_BS)
        if now("hang"):
            os.kill(os.getpid(), signal.SIGSTOP)
        if now("full"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))
        if now("kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        if now("raise"):
            raise ArithmeticError("no sum")
        x_BTD = type(trained).forward(trained, src_BS, keep_BS, tgt_BT)
        return x_BTD * float("nan") if now("poison") else x_BTD

    if job["grown"] and group.leads:
        trained.encoder.embed(torch.ones(1, 600, dtype=torch.int64))
    trained.forward = forward
    trained.encoder.layers[0].register_forward_pre_hook(before)
    trained.encoder.layers[0].register_forward_hook(after)

    def evaluate() -> Scores:
        with group.assembled(trained), evaluating(trained):
            for _ in range(group.rank):  # each has another share of the validation set, the first none
                mean_loss(trained, pairs(**job["pairs"]))
        return group.first(lambda: Scores(1.0, 2.7, bleu=next(scores)))

    events = list(
        fit(
            trained,
            learner,
            linked,
            state,
            schedule=constant(1e-2, 0),
            rules=rules,
            evaluate=evaluate if job["bleu"] else None,
            store=kept if group.leads or group.spreads else None,
            should_stop=lambda: f"rank {group.rank} says so" if now("stop") else None,
            clock=lambda: next(ticks) * pace,
            ranks=group,
            ema=ema,
        )
    )
    return {
        "losses": [event.loss for event in events if isinstance(event, Step)],
        "norms": [event.norm for event in events if isinstance(event, Step)],
        "tokens": [event.tokens for event in events if isinstance(event, Step)],
        "skipped": [[event.step, *event.rows] for event in events if isinstance(event, Skipped)],
        "halved": [[event.step, event.rank, event.tokens] for event in events if isinstance(event, Halved)],
        "best": [event.best for event in events if isinstance(event, Validation)],
        "stopped": [[event.step, event.reason] for event in events if isinstance(event, Stopped)],
        "seen": data.seen,
        "measured": measured(trained, group, ema),
        "as_by_torch": as_by_torch(group) if job["beside"] else None,
        "state": state.plain(),
        "status": 0,
    }


def measured(trained: Seq2Seq, group: Ranks, ema: Ema | None) -> list[Any]:
    """What a validation by all of `group` gives: the loss of five batches, and a text for each of seven lines."""
    with ema.shown() if ema else nullcontext(), group.assembled(trained), evaluating(trained):
        loss = mean_loss(trained, pairs(19, seed=9), ranks=group)
    return [loss, *dealt(range(7), lambda share: [f"line {number}" for number in share], group)]


def as_by_torch(group: Ranks) -> bool:
    """Whether this process's gradients, added up over the group, are those that DistributedDataParallel adds up."""
    own, other = model(dropout=0.0), model(dropout=0.0)
    theirs = DistributedDataParallel(Objective(other))
    data, sums = pairs(), group.gradients(own)
    updates = data.updates(0)
    for update in updates:
        batches = [data.load(rows) for rows in group.share(update)]
        sums.begin()
        other.zero_grad()
        for number, batch in enumerate(batches, 1):
            with sums.passing(last=number == len(batches)):
                Objective(own)(batch, 0.1, data.pad)[0].backward()
            with theirs.no_sync() if number < len(batches) else nullcontext():
                theirs(batch, 0.1, data.pad)[0].backward()
        sums.finish()
        alike = zip(own.parameters(), other.parameters(), strict=True)
        if not all(torch.equal(p.grad, q.grad * group.size) for p, q in alike):
            return False
    return len(updates) > 1


def rank(folder: Path, jobs: list[dict[str, Any]], seat: Seat) -> None:
    """Do the jobs as one process, to the first that fails; its exit status is how many it has begun."""
    for begun, job in enumerate(jobs, 1):
        seat = replace(seat, meeting=f"file://{folder}/meeting-{job['number']}")
        try:
            with join(seat, "cpu", 5, timedelta(seconds=job["limit"]), job["sharding"]) as group:
                assert group.call()
                done = train(folder / job["name"], job, group)
                group.part()
        except NmtError as error:
            done = {"status": getattr(error, "status", 1), "problem": error.problem}
        except BaseException:
            done = {"status": 70, "problem": traceback.format_exc()}
        tell(folder, job, done, seat.rank)
        if done["status"]:
            os._exit(begun)
    os._exit(len(jobs))


def tell(folder: Path, job: dict[str, Any], done: dict[str, Any], rank: int = 0) -> None:
    (folder / job["name"] / f"rank-{rank}.json").write_text(json.dumps(done))


def forked(folder: Path, jobs: list[dict[str, Any]], size: int) -> int:
    """Do the jobs as so many processes, to the first that fails; how many were begun."""
    children, begun = [], 1
    for place in range(size):
        child = os.fork()
        if child == 0:
            rank(folder, jobs, Seat(place, size, place, size))
        children.append(child)
    may_hang = {job["hang"][0] for job in jobs if job["hang"]}
    for place in sorted(range(size), key=lambda place: place in may_hang):
        if place in may_hang and jobs[begun - 1]["hang"]:
            os.kill(children[place], signal.SIGKILL)
        begun = max(begun, os.waitstatus_to_exitcode(os.waitpid(children[place], 0)[1]))
    return begun


def main(folder: Path, jobs: list[dict[str, Any]]) -> None:
    torch.set_num_threads(1)
    contact.SETTLE = 0.2  # nothing here is slow to notice
    ranks.GATHERING = timedelta(minutes=1)
    jobs = [{**DEFAULTS, "number": number, **job} for number, job in enumerate(jobs)]
    for job in jobs:
        (folder / job["name"]).mkdir(parents=True, exist_ok=True)
    for size, some in groupby(jobs, lambda job: job["size"]):
        left = list(some)
        while size > 1 and left:
            left = left[forked(folder, left, size) :]
        for job in left:
            tell(folder, job, train(folder / job["name"], job, Ranks()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
