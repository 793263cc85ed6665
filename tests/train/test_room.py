"""When memory runs out in the middle of an update, the update is the same nevertheless."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close
from train.toys import PAD, SCHEDULE, model, optimizer, pairs, steps_of, store

from nmt.checkpoint.tensors import weights
from nmt.errors import TrainingError
from nmt.model.seq2seq import Seq2Seq
from nmt.train.events import Halved, Step
from nmt.train.fit import fit
from nmt.train.journal import Journal, read_journal
from nmt.train.optimizer import sgd
from nmt.train.room import Room, padded, ran_out
from nmt.train.rules import Rules
from nmt.train.state import State
from nmt.train.update import learn

TESTS = Path(__file__).parents[1]


def no_memory(*_: object) -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")


def fails_forwards(trained: Seq2Seq, rows: int) -> None:
    """Let the model have no memory for batches of so many rows or more."""

    def before(model: nn.Module, given: tuple[torch.Tensor, ...]) -> None:
        if len(given[0]) >= rows:
            no_memory()

    trained.register_forward_pre_hook(before)


def fails_backwards(trained: Seq2Seq, rows: int) -> None:
    """The same, but it shows only when the decoder's gradients have been added up already."""
    batch: list[torch.Tensor] = []

    def before(model: nn.Module, given: tuple[torch.Tensor, ...]) -> None:
        batch[:] = given

    def after(layer: nn.Module, given: tuple[torch.Tensor, ...], x: torch.Tensor) -> None:
        if len(batch[0]) >= rows:
            x.register_hook(no_memory)

    trained.register_forward_pre_hook(before)
    trained.encoder.layers[0].register_forward_hook(after)


FAULTS = pytest.mark.parametrize("fault", [fails_forwards, fails_backwards])


@FAULTS
@pytest.mark.parametrize("rows", [2, 3, 4, 6, 7])
def test_the_gradient_of_a_halved_batch_is_that_of_the_whole(fault, rows: int) -> None:
    data = pairs(20, batch_tokens=1000)
    batches = [data.load(some) for some in np.array_split(np.arange(20), 3)]
    whole, halved, room = model(dropout=0.0).double(), model(dropout=0.0).double(), Room()
    fault(halved, rows)
    expected = learn(whole, sgd(whole), batches, rate=0.5, rules=Rules(clip_norm=0.3), pad=PAD)
    outcome = learn(halved, sgd(halved), batches, rate=0.5, rules=Rules(clip_norm=0.3), pad=PAD, room=room)
    assert_close(weights(halved), weights(whole), atol=1e-12, rtol=0)
    assert (outcome.loss, outcome.norm) == pytest.approx((expected.loss, expected.norm), rel=1e-12)
    assert outcome.tokens == expected.tokens
    sizes = [size for _, size in outcome.too_large]
    assert sizes and sizes == sorted(sizes, reverse=True) and room.limit == sizes[-1]


def test_halves_are_the_pairs_of_the_whole_with_no_more_padding_than_they_need() -> None:
    data = pairs(9, batch_tokens=1000)
    rows = np.arange(9)
    first, second = data.load(rows).halves(PAD)
    for half, expected in ((first, data.load(rows[:5])), (second, data.load(rows[5:]))):
        assert half.tokens == expected.tokens
        for name in ("src_BS", "keep_BS", "tgt_BT", "out_BT"):
            assert torch.equal(getattr(half, name), getattr(expected, name))


@pytest.mark.parametrize("limit", [1, 7, 12, 40, 10**6])
def test_batches_are_cut_until_they_are_smaller_than_what_did_not_fit(limit: int) -> None:
    data, room = pairs(13, batch_tokens=1000), Room()
    batch = data.load(np.arange(13))
    assert room.cut([batch], PAD) == [batch]
    room.limit = limit
    parts = room.cut([batch], PAD)
    assert all(padded(part) < limit or len(part.src_BS) == 1 for part in parts)
    assert sum(part.tokens for part in parts) == batch.tokens
    ids = [row[row != PAD].tolist() for part in parts for row in part.out_BT]
    assert ids == [row[row != PAD].tolist() for row in batch.out_BT]


def test_a_single_pair_that_does_not_fit_ends_training() -> None:
    trained = model()
    fails_forwards(trained, 1)
    with pytest.raises(TrainingError, match="one pair of 4 source and 4 target tokens needs more memory") as problem:
        learn(trained, optimizer(trained), [pairs().load(np.arange(4))], rate=0.1, rules=Rules(), pad=PAD)
    assert "max_source_tokens" in problem.value.hint


LACKS = [
    MemoryError("std::bad_alloc"),
    torch.OutOfMemoryError("CUDA out of memory"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you tried"),
    OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
]


@pytest.mark.parametrize("error", LACKS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(("part", "place"), [("step", "step 3"), ("validate", "validation at step 2"), ("save", "sav")])
def test_memory_that_runs_out_beside_the_batches_ends_training_at_its_place(
    error: Exception, part: str, place: str, tmp_path: Path, monkeypatch
) -> None:
    trained, kept = model(), store(tmp_path)
    learner, made = optimizer(trained), [0]

    def fails(*_: object, **__: object) -> None:
        raise error

    def third(*_: object) -> None:
        made[0] += 1
        if made[0] == 3:
            raise error

    if part == "step":
        learner.register_step_pre_hook(third)
    elif part == "save":
        monkeypatch.setattr(kept, "save", fails)
    given = {"store": kept, "evaluate": fails if part == "validate" else None}
    rules = Rules(steps=6, save_every=2, validate_every=2)
    with pytest.raises(TrainingError, match=f"{place}.*: the memory of rank 0 does not suffice") as problem:
        list(fit(trained, learner, pairs(), State(), schedule=SCHEDULE, rules=rules, **given))
    assert "train.batch_tokens" in problem.value.hint and "newest checkpoint" in problem.value.hint
    assert steps_of(tmp_path) == ([] if part == "save" else [2])


def test_other_errors_of_the_model_are_no_lack_of_memory() -> None:
    trained = model()
    trained.encoder.layers[0].register_forward_pre_hook(lambda *_: torch.ones(2) @ torch.ones(3))
    with pytest.raises(RuntimeError, match="size") as problem:
        list(fit(trained, optimizer(trained), pairs(), State(), schedule=SCHEDULE, rules=Rules(steps=3)))
    assert problem.value.__notes__[0].startswith("rank 0 of 1, step 1 (epoch 1), in the batch of the pairs ")


@pytest.mark.parametrize("rest", ["", " descriptor for a matmul primitive"])
def test_a_product_that_cannot_be_begun_lacks_memory_and_one_that_there_is_not_does_not(rest: str) -> None:
    assert ran_out(RuntimeError(f"could not create a primitive{rest}")) is not bool(rest)


@FAULTS
def test_training_goes_on_and_each_size_is_told_and_tried_once(fault, tmp_path: Path) -> None:
    tried: list[torch.Tensor] = []

    def losses(trained: Seq2Seq) -> list[object]:
        return list(fit(trained, optimizer(trained), pairs(), State(), schedule=SCHEDULE, rules=Rules(steps=20)))

    whole = losses(model(dropout=0.0))
    trained = model(dropout=0.0)
    fault(trained, 4)
    trained.register_forward_pre_hook(lambda model, given: tried.append(given[0]), prepend=True)
    events = losses(trained)
    steps, others = ([event.loss for event in these if isinstance(event, Step)] for these in (events, whole))
    assert steps == pytest.approx(others, abs=1e-5)
    halved = [event for event in events if isinstance(event, Halved)]
    assert 1 <= len(halved) <= 4
    assert sum(len(src_BS) >= 4 for src_BS in tried) == len(halved), "what is known not to fit is not tried again"
    journal = Journal(tmp_path / "journal.jsonl")
    for event in events:
        journal.write(event)
    told = [line for line in read_journal(journal.path) if line["event"] == "halved"]
    assert [(line["step"], line["tokens"]) for line in told] == [(event.step, event.tokens) for event in halved]


REAL = """
import os, resource
import torch
from train.toys import PAD, model
from nmt.batches.batch import collate
from nmt.train.optimizer import sgd
from nmt.train.room import Room
from nmt.train.rules import Rules
from nmt.train.update import learn

torch.set_num_threads(1)
ids = [[5, 6, 7] * 66] * 32
batch = collate(ids, ids, bos=2, eos=3, pad=PAD)
one, room = model(dropout=0.0, width=16, feedforward=1024), Room()
learn(one, sgd(one), batch.halves(PAD)[0].halves(PAD)[0].halves(PAD), rate=0.0, rules=Rules(), pad=PAD)

def learned():
    outcome = learn(one, sgd(one), [batch], rate=0.5, rules=Rules(), pad=PAD, room=room)
    print(bool(outcome.too_large), outcome.loss, outcome.norm, flush=True)

for limit, place in ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5)):
    if not (short := os.fork()):
        pages = int(open("/proc/self/statm").read().split()[place])
        resource.setrlimit(limit, (pages * 4096 + (64 << 20),) * 2)
        learned()
        os._exit(0)
    assert os.waitpid(short, 0)[1] == 0
learned()
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_a_processor_s_memory_that_really_runs_out_is_no_different() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", REAL], capture_output=True, text=True, timeout=60, env={"PYTHONPATH": str(TESTS)}
    )
    assert ended.returncode == 0, ended.stderr
    *limited, (free, *expected) = (line.split() for line in ended.stdout.splitlines())
    assert (free, len(limited)) == ("False", 2)
    for short, *found in limited:
        assert short == "True"
        assert [float(number) for number in found] == pytest.approx([float(number) for number in expected], rel=1e-4)
