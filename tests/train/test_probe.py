"""`batch_tokens = "auto"`: as much as memory holds, no more than is faster, and the same number ever after."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from train.runs import prepared, recipe

from nmt.checkpoint.tensors import read_tensors
from nmt.errors import TrainingError
from nmt.events import Event
from nmt.stages import train
from nmt.stages.stage import RunFolder
from nmt.train import memory
from nmt.train.events import Step
from nmt.train.probe import GAIN, LEAST, MOST, Trial, largest

TESTS = Path(__file__).parents[1]
ROOM = 1 << 30


class Machine:
    """Needs `own` bytes and `each` for a token; its speed rises to `best` tokens a second, reached at `full` tokens."""

    def __init__(self, own: int, each: int, full: int = 1 << 40, physical: float = math.inf) -> None:
        self.own, self.each, self.full, self.physical = own, each, full, physical
        self.asked: list[int] = []

    def needs(self, tokens: int) -> int:
        return self.own + self.each * tokens

    def __call__(self, tokens: int) -> Trial | None:
        self.asked.append(tokens)
        seconds = max(tokens, self.full) / 1000
        return Trial(tokens, self.needs(tokens), seconds) if self.needs(tokens) <= self.physical else None


@settings(max_examples=200)
@given(st.integers(0, 10**8), st.integers(1, 10**6), st.integers(2, 600), st.booleans())
def test_what_is_found_fits_and_not_much_more_would(own: int, each: int, longest: int, ends_hard: bool) -> None:
    machine = Machine(own, each, physical=ROOM if ends_hard else math.inf)
    if machine.needs(max(longest, LEAST)) > ROOM:
        with pytest.raises(TrainingError, match="needs more than the 1.0 GiB"):
            largest(machine, ROOM, longest)
        return
    found = largest(machine, ROOM, longest)
    assert machine.needs(found) <= ROOM and found >= longest
    doubled = len(machine.asked) > 2  # of a single trial's memory, nobody knows which is the model's
    assert not doubled or found >= MOST / 2 or machine.needs(found + 65) > ROOM
    assert all(machine.needs(tokens) <= ROOM for tokens in machine.asked[:-1])


@pytest.mark.parametrize("full", [1, 2000, 5000, 30_000])
def test_more_tokens_that_are_not_faster_are_not_taken(full: int) -> None:
    machine = Machine(0, 1, full)
    found = largest(machine, ROOM, 100)
    assert full / GAIN <= found <= max(2 * full, LEAST) and machine.asked[-1] == 2 * found


def test_a_machine_without_end_gets_the_most_that_is_tried() -> None:
    assert largest(Machine(0, 1), 1 << 60, 100) == MOST


def test_memory_is_measured_as_it_is_taken() -> None:
    device = torch.device("cpu")
    memory.forget_peak(device)
    before, free = memory.used(device), memory.available(device)
    taken = torch.ones(64 << 20, dtype=torch.uint8)
    during = memory.used(device)
    assert 60 << 20 <= during - before <= 80 << 20
    assert memory.peak(device) >= during
    del taken
    assert free > 0


def test_a_limit_of_a_control_group_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = tmp_path / "cgroup/outer/inner"
    group.mkdir(parents=True)
    (tmp_path / "self").mkdir()
    (tmp_path / "self/cgroup").write_text("0::/outer/inner\n")
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 8000 kB\n")
    monkeypatch.setattr(memory, "PROC", tmp_path)
    monkeypatch.setattr(memory, "CGROUPS", tmp_path / "cgroup")
    assert memory.available(torch.device("cpu")) == 8000 * 1024
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("100\n")
    assert memory.available(torch.device("cpu")) == 8000 * 1024
    (group.parent / "memory.max").write_text("5000000\n")
    (group.parent / "memory.current").write_text("1000000\n")
    assert memory.available(torch.device("cpu")) == 4_000_000


# --- in a run ---


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("auto")
    prepared(made)
    return made


def trained(folder: Path, name: str, *changes: str) -> tuple[RunFolder, list[Event]]:
    run = RunFolder(folder / name)
    if not run.path.exists():
        shutil.copytree(folder / "run", run.path)
    return run, list(train.run(recipe(folder, "train.steps=4", *changes), run))


def test_training_begins_as_with_the_number_itself_and_goes_on_with_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, events = trained(folder, "auto", "train.batch_tokens=auto")
    found = json.loads(run.batch_tokens.read_text())["batch_tokens"]
    assert found >= 2
    other, same = trained(folder, "given", f"train.batch_tokens={found}")
    assert [e.loss for e in events if isinstance(e, Step)] == [e.loss for e in same if isinstance(e, Step)] != []
    weights = [read_tensors(each.checkpoints / "step-00000004/model.safetensors") for each in (run, other)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[1])
    run.batch_tokens.write_text(json.dumps({"batch_tokens": found}))
    monkeypatch.setattr(memory, "available", lambda device: 1)  # another machine, where it would not be found again
    _, on = trained(folder, "auto", "train.batch_tokens=auto", "train.steps=6")
    assert [e.step for e in on if isinstance(e, Step)] == [5, 6]
    assert not any("changed settings" in str(event) for event in on)


LIMITED = """
import resource, sys
from dataclasses import replace
from pathlib import Path
import torch
from nmt.model.config import TransformerConfig
from nmt.train.config import AdamConfig
from nmt.train.probe import largest, memory_limit, tried
from nmt.train.rules import Rules
from nmt.batches.batch import collate
from nmt.train.update import learn
from nmt.train.room import Room
import numpy as np

torch.set_num_threads(1)
model = TransformerConfig(width=16, feedforward=2048, encoder_layers=1, decoder_layers=1).build(50, 50, 0)
model.initialize(torch.Generator().manual_seed(1))
optimizer = AdamConfig().build(model)
trial = tried(model, optimizer, (32, 32), Rules(), 0)
trial(512)
pages = int(Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + (int(sys.argv[1]) << 20),) * 2)

def ever_faster(tokens):
    done = trial(tokens)
    return done and replace(done, seconds=done.tokens ** 0.5)

found = largest(ever_faster, memory_limit(torch.device("cpu"), 1), 32)
room = Room()
ids = [np.full(31, 5)] * (found // 32)
learn(model, optimizer, [collate(ids, ids, bos=2, eos=3, pad=0)], rate=0.1, rules=Rules(), pad=0, room=room)
print(found, room.limit)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_what_is_found_under_a_real_limit_really_fits() -> None:
    found = []
    for megabytes in ("150", "300"):
        ended = subprocess.run(
            [sys.executable, "-c", LIMITED, megabytes],
            capture_output=True,
            text=True,
            timeout=120,
            env={"PYTHONPATH": str(TESTS)},
        )
        assert ended.returncode == 0, ended.stderr
        tokens, unfit = ended.stdout.split()
        assert unfit == "None"
        found.append(int(tokens))
    assert LEAST <= found[0] < found[1]
