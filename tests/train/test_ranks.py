"""Many processes train as one does: the same sentences in the same updates, the same weights in the end."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close
from train import together
from train.toys import learned, model, optimizer, pairs, steps_of, store, turning

from nmt.checkpoint import layout
from nmt.checkpoint.layout import step_name
from nmt.checkpoint.tensors import read_tensors
from nmt.train.launch import LOST, Seat
from nmt.train.ranks import Ranks, share
from nmt.train.state import State

TESTS = Path(__file__).parents[1]
TIGHT = 1e-5
FOUR = pytest.param(4, marks=pytest.mark.slow)

METHODS = {"muon": True, "layer_drop": 0.3, "freeze": ["encoder", "biases"], "guide": {"weight": 0.5}, "ema": 0.5}

ALIKE: dict[str, dict[str, Any]] = {  # what one process and many must do alike
    "batches_split_by_rows": {"rules": {"steps": 12}},
    "three_batches_an_update": {"rules": {"epochs": 3}, "pairs": {"accumulate": 3}},
    "five_batches": {"rules": {"epochs": 3}, "pairs": {"count": 19, "accumulate": 2}},
    "one_batch": {"rules": {"epochs": 3}, "pairs": {"count": 3}},
    "one_pair": {"rules": {"epochs": 3}, "pairs": {"count": 1}},
    "groups": {"rules": {"epochs": 2}, "pairs": {"group": 7, "accumulate": 2}},
    "clipped": {"rules": {"steps": 5, "clip_norm": 0.1}, "pairs": {"accumulate": 2}},
    "validated": {"rules": {"steps": 60, "patience": 2}, "bleu": [3, 5, 4, 4, 9]},
    "two_passes": {"rules": {"steps": 6, "rdrop_alpha": 5.0}, "pairs": {"accumulate": 3}},
    "layers_left_out": {"rules": {"steps": 9}, "pairs": {"accumulate": 3}, "layer_drop": 0.5},
    "frozen": {"rules": {"steps": 9}, "freeze": ["encoder", "biases"]},
    "guided": {"rules": {"steps": 9}, "guide": {"weight": 0.5}, "pairs": {"accumulate": 3}},
    "averaged": {"rules": {"steps": 9}, "ema": 0.5},
    "turned": {"rules": {"steps": 9}, "muon": True},
    "placed": {"rules": {"steps": 9, "patience": 9}, "positions": 8, "bleu": [3, 5, 4]},
    "all_methods": {"rules": {"steps": 9, "rdrop_alpha": 5.0}, **METHODS},
}
SHARDED = (
    "three_batches_an_update",
    "five_batches",
    "one_pair",
    "clipped",
    "validated",
    "turned",
    "placed",
    "all_methods",
)  # tried with parts of a model
TWO: dict[str, list[dict[str, Any]]] = {  # what is tried with two processes only, one job after another
    # those that fail: the processes of the others do one job after another
    "killed": [{"rules": {"steps": 12}, "every": 1, "kill": [1, 6]}],
    "killed_and_on": [{"rules": {"steps": 12}, "every": 1, "kill": [1, 6]}, {"rules": {"steps": 12}}],
    "leader_killed": [{"rules": {"steps": 12}, "every": 1, "kill": [0, 6]}],
    "raised": [{"rules": {"steps": 12}, "every": 1, "raise": [1, 6]}],
    "hung": [{"rules": {"steps": 12}, "every": 1, "hang": [1, 6], "limit": 1}],
    "full": [{"rules": {"steps": 12}, "every": 1, "full": [0, 6]}],
    "sharded_short": [{"rules": {"steps": 12}, "sharding": "full", "short": [1, 6, 1], "limit": 20}],
    "too_short": [{"rules": {"steps": 12}, "every": 1, "short": [1, 6, 1]}],
    # those that end well
    "on": [{"rules": {"steps": 5}}, {"rules": {"steps": 12}, "size": 1}],
    "back": [{"rules": {"steps": 5}, "size": 1}, {"rules": {"steps": 12}}],
    "grown": [{"rules": {"steps": 12}, "grown": True}],
    "thinned": [{"rules": {"steps": 10}, "dropout": 0.2}],
    "thinned_in_two": [{"rules": {"steps": 4}, "dropout": 0.2}, {"rules": {"steps": 10}, "dropout": 0.2}],
    "asked": [{"rules": {"steps": 12}, "stop": [1, 6]}],
    "poisoned": [{"rules": {"steps": 8}, "poison": [1, 4]}],
    "beside": [{"rules": {"steps": 1}, "beside": True}],
    "sharded_on": [{"rules": {"steps": 5}, "sharding": "full"}, {"rules": {"steps": 12}, "size": 1}],
    "sharded_back": [{"rules": {"steps": 5}, "size": 1}, {"rules": {"steps": 12}, "sharding": "full"}],
    "sharded_off": [{"rules": {"steps": 5}, "sharding": "full"}, {"rules": {"steps": 12}}],
    "sharded_methods_on": [
        {"rules": {"steps": 5, "rdrop_alpha": 5.0}, **METHODS, "sharding": "full"},
        {"rules": {"steps": 9, "rdrop_alpha": 5.0}, **METHODS, "size": 1},
    ],
    "sharded_methods_back": [
        {"rules": {"steps": 5, "rdrop_alpha": 5.0}, **METHODS, "size": 1},
        {"rules": {"steps": 9, "rdrop_alpha": 5.0}, **METHODS, "sharding": "full"},
    ],
    "measured": [{"rules": {"steps": 5}, "size": 1}, {"rules": {"steps": 5}}],
    "short": [{"rules": {"steps": 12}, "short": [1, 4, 2]}],
    "short_backward": [{"rules": {"steps": 12}, "short": [1, 4, 2], "backward": True}],
    "leader_short": [{"rules": {"epochs": 3}, "pairs": {"accumulate": 3}, "short": [0, 2, 3], "backward": True}],
    "timed": [{"rules": {"minutes": 1}, "slow": [1, 4.0]}],
}


def turn(number: int) -> list[dict[str, Any]]:
    """The first jobs, or the second, of those in TWO; what one process does stands at the outer end."""
    jobs = [{"name": name, **several[number]} for name, several in TWO.items() if number < len(several)]
    return sorted(jobs, key=lambda job: job.get("size", 2), reverse=number > 0)


def done(folder: Path, jobs: list[dict[str, Any]]) -> Path:
    """Do the jobs; the folder that holds theirs."""
    command = [sys.executable, str(TESTS / "train" / "together.py"), str(folder), json.dumps(jobs)]
    ended = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(TESTS)}, capture_output=True, text=True, timeout=900
    )
    assert ended.returncode == 0, ended.stderr
    assert "Warning" not in ended.stderr, "torch sees nothing to warn of"
    return folder


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("alone")
    together.main(folder, [{"name": name, "size": 1, **job} for name, job in ALIKE.items()])
    return folder


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """The folder of the jobs done with so many processes: once, whichever worker of pytest asks first."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def of(size: int) -> Path:
        jobs = [{"name": name, "size": size, **job} for name, job in ALIKE.items()]
        if size == 2:
            jobs += [{"name": f"sharded_{name}", "sharding": "full", **ALIKE[name]} for name in SHARDED]
            jobs = [*turn(0), *jobs, *turn(1)]
        with (shared / f"many-{size}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            made = shared / f"many-{size}"
            if not made.exists():
                made.mkdir()
                done(made, jobs)
        return made

    return of


def told(folder: Path, rank: int = 0) -> dict[str, Any]:
    """What happened to a process."""
    return json.loads((folder / f"rank-{rank}.json").read_text())


def final(folder: Path) -> dict[str, torch.Tensor]:
    """The weights of the last checkpoint, which must be whole."""
    last = folder / step_name(steps_of(folder)[-1])
    weights, kept = read_tensors(last / layout.WEIGHTS), read_tensors(last / layout.RESUME / layout.OPTIMIZER)
    whole = model(**learned(len(weights.get("encoder.position.weight", ()))))
    turned = any(name.endswith(".momentum") for name in kept)
    store(folder).restore(last, whole, (turning if turned else optimizer)(whole))
    return weights


# --- one process and many ---


@pytest.mark.parametrize("size", [2, FOUR])
@pytest.mark.parametrize("name", ALIKE)
def test_many_processes_have_the_losses_and_the_weights_of_one(name: str, size: int, alone: Path, many) -> None:
    one, several = told(alone / name), [told(many(size) / name, rank) for rank in range(size)]
    assert len(one["losses"]) >= 3
    for each in several:
        assert each["status"] == 0, each
        assert each["losses"] == pytest.approx(one["losses"], abs=TIGHT)
        assert each["norms"] == pytest.approx(one["norms"], rel=1e-4)
        assert each["tokens"] == one["tokens"]
        assert each["best"] == one["best"]
        assert {**each["state"], "elapsed": 0} == {**one["state"], "elapsed": 0}
    assert all(each["losses"] == several[0]["losses"] for each in several), "the same bits in each"
    assert steps_of(many(size) / name) == steps_of(alone / name)
    assert_close(final(many(size) / name), final(alone / name), atol=TIGHT, rtol=0)


def test_gradients_are_those_that_torchs_distributed_data_parallel_adds_up(many) -> None:
    assert [told(many(2) / "beside", rank)["as_by_torch"] for rank in range(2)] == [True, True]


@pytest.mark.parametrize("name", SHARDED)
def test_processes_that_keep_parts_of_a_model_have_the_losses_and_the_weights_of_one(
    name: str, alone: Path, many
) -> None:
    one, both = told(alone / name), [told(many(2) / f"sharded_{name}", rank) for rank in range(2)]
    for each in both:
        assert each["status"] == 0, each
        assert each["losses"] == pytest.approx(one["losses"], abs=TIGHT)
        assert each["norms"] == pytest.approx(one["norms"], rel=1e-4)
        assert each["best"] == one["best"]
        assert each["measured"] == both[0]["measured"]
        assert each["measured"][0] == pytest.approx(one["measured"][0], abs=TIGHT)
    assert steps_of(many(2) / f"sharded_{name}") == steps_of(alone / name)
    assert_close(final(many(2) / f"sharded_{name}"), final(alone / name), atol=TIGHT, rtol=0)


@pytest.mark.parametrize("size", [2, FOUR])
@pytest.mark.parametrize("name", ALIKE)
def test_every_pair_is_used_once_an_epoch_over_all_processes(name: str, size: int, many) -> None:
    seen = [told(many(size) / name, rank) for rank in range(size)]
    rows = Counter(row for each in seen for some in each["seen"] for row in some)
    state = seen[0]["state"]
    data = pairs(**ALIKE[name].get("pairs", {}))
    planned = [data.order.updates(epoch) for epoch in range(state["epoch"] + 1)]
    planned[-1] = planned[-1][: state["update"]]
    assert rows == Counter(int(row) for updates in planned for update in updates for some in update for row in some)


def test_five_batches_and_fewer_pairs_than_processes_are_really_tried() -> None:
    assert [len(update) for update in pairs(**ALIKE["five_batches"]["pairs"]).updates(0)] == [2, 2, 1]
    assert [len(update) for update in pairs(**ALIKE["one_batch"]["pairs"]).updates(0)] == [1]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("batches", [1, 2, 3, 5, 8, 9])
def test_an_updates_parts_are_the_update_and_none_is_empty(size: int, batches: int) -> None:
    update = [np.arange(10 * i, 10 * i + i % 4 + 1) for i in range(batches)]
    parts = []
    for rank in range(size):
        ranks = Ranks()
        ranks.rank, ranks.size = rank, size
        parts.append(ranks.share(update))
    assert all(parts)
    shared = sorted(int(row) for part in parts for rows in part for row in rows)
    assert shared == sorted(int(row) for rows in update for row in rows)
    assert max(map(len, parts)) - min(map(len, parts)) <= batches % size
    if size == 1:
        assert parts[0] == update


def test_a_batch_of_no_pairs_has_no_loss_and_no_gradient() -> None:
    data, still = pairs(), model()
    batch = data.load(np.arange(0))
    assert batch.tokens == 0
    loss, nll = Ranks().objective(still)(batch, 0.1, data.pad)
    loss.backward()
    assert loss.item() == nll.item() == 0
    assert all(p.grad is not None and not p.grad.any() for p in still.parameters())


def test_a_validation_shared_out_gives_each_process_the_same_bits_as_one_alone(many) -> None:
    folder = many(2) / "measured"
    both = [told(folder, rank) for rank in range(2)]
    one = model()
    store(folder).restore(folder / step_name(5), one, optimizer(one))
    assert [each["losses"] for each in both] == [[], []], "they measure what one process has trained"
    assert both[0]["measured"] == both[1]["measured"] == together.measured(one, Ranks(), None)
    assert both[0]["measured"][1:] == [f"line {number}" for number in range(7)]


def test_a_table_that_has_grown_on_one_process_only_is_its_own_business(alone: Path, many) -> None:
    assert told(many(2) / "grown", 1)["status"] == 0
    assert_close(final(many(2) / "grown"), final(alone / "batches_split_by_rows"), atol=TIGHT, rtol=0)


# --- going on ---

WAYS = ("on", "back", "sharded_on", "sharded_back", "sharded_off")


@pytest.mark.parametrize("name", [*WAYS, "sharded_methods_on", "sharded_methods_back"])
def test_a_training_goes_on_with_other_processes_and_with_parts_or_the_whole(name: str, alone: Path, many) -> None:
    unbroken = alone / ("batches_split_by_rows" if name in WAYS else "all_methods")
    assert told(many(2) / name)["losses"] == pytest.approx(told(unbroken)["losses"][5:], abs=TIGHT)
    assert_close(final(many(2) / name), final(unbroken), atol=TIGHT, rtol=0)


def test_with_dropout_the_same_number_of_processes_goes_on_bit_for_bit(alone: Path, many) -> None:
    whole, parts = told(many(2) / "thinned"), told(many(2) / "thinned_in_two")
    assert parts["losses"] == whole["losses"][4:]
    assert_close(final(many(2) / "thinned_in_two"), final(many(2) / "thinned"), atol=0, rtol=0)
    assert whole["losses"] != told(alone / "batches_split_by_rows")["losses"][:10]


def test_a_signal_to_one_process_stops_all_after_the_same_update(many) -> None:
    both = [told(many(2) / "asked", rank) for rank in range(2)]
    assert [each["stopped"] for each in both] == [[[5, "rank 1 says so"]]] * 2
    assert steps_of(many(2) / "asked")[-1] == 5


def test_minutes_end_all_processes_after_the_same_update_by_the_slowest_clock(many) -> None:
    both = [told(many(2) / "timed", rank) for rank in range(2)]
    assert both[0]["state"] == both[1]["state"] and both[0]["state"]["elapsed"] >= 60
    assert both[0]["stopped"] == both[1]["stopped"]


# --- what goes wrong on one of them ---


def test_a_loss_that_is_not_finite_on_one_process_is_skipped_by_all(many) -> None:
    both = [told(many(2) / "poisoned", rank) for rank in range(2)]
    update = pairs().updates(0)[3]
    assert [each["skipped"] for each in both] == [[[4, *(int(row) for some in update for row in some)]]] * 2
    assert [each["state"]["skipped"] for each in both] == [1, 1]
    assert all(bool(torch.isfinite(weight).all()) for weight in final(many(2) / "poisoned").values())


ENDED, HUNG = "has ended", "has not answered for 1 seconds: it hangs"


@pytest.mark.parametrize(
    ("name", "lost", "how"),
    [
        ("killed", 1, ENDED),
        ("raised", 1, ENDED),
        ("leader_killed", 0, ENDED),
        ("hung", 1, HUNG),
    ],
)
def test_the_loss_of_one_process_ends_the_others_who_name_it_and_its_batch(
    name: str, lost: int, how: str, many
) -> None:
    ended = told(many(2) / name, 1 - lost)
    rows = ", ".join(str(row) for some in share(pairs().updates(0)[5], lost, 2) for row in some)
    place = f"at step 6 (epoch 1), in the batch of the pairs {rows}"
    assert (ended["status"], ended["problem"]) == (LOST, f"rank {lost} of 2 {how} {place}")
    assert steps_of(many(2) / name) == [1, 2, 3, 4, 5]
    assert final(many(2) / name)


def test_what_one_process_raises_stays_what_it_is_and_tells_its_batch(many) -> None:
    ended = told(many(2) / "raised", 1)
    rows = ", ".join(str(row) for some in share(pairs().updates(0)[5], 1, 2) for row in some)
    assert ended["status"] == 70 and "ArithmeticError: no sum" in ended["problem"]
    assert ended["problem"].endswith(f"rank 1 of 2, step 6 (epoch 1), in the batch of the pairs {rows}\n")


def test_a_full_disk_is_told_by_who_writes_and_ends_the_other(many) -> None:
    leader, other = (told(many(2) / "full", rank) for rank in range(2))
    assert leader["status"] == 1 and "step-00000006/model.safetensors: cannot be written" in leader["problem"]
    assert other["status"] == LOST and other["problem"].startswith("rank 0 of 2 has ended at step ")
    assert steps_of(many(2) / "full") == [1, 2, 3, 4, 5]


# --- memory ---


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("short", "batches_split_by_rows"),
        ("short_backward", "batches_split_by_rows"),
        ("leader_short", "three_batches_an_update"),
    ],
)
def test_memory_that_runs_out_on_one_process_changes_no_update(name: str, like: str, alone: Path, many) -> None:
    one, both = told(alone / like), [told(many(2) / name, rank) for rank in range(2)]
    for each in both:
        assert each["status"] == 0, each
        assert each["losses"] == pytest.approx(one["losses"], abs=TIGHT)
        assert each["norms"] == pytest.approx(one["norms"], rel=1e-4)
    assert both[0]["halved"] == both[1]["halved"] != []
    assert {rank for _, rank, _ in both[0]["halved"]} == {0 if name == "leader_short" else 1}
    sizes = [size for _, _, size in both[0]["halved"]]
    assert sizes == sorted(set(sizes), reverse=True), "each size is told once"
    assert_close(final(many(2) / name), final(alone / like), atol=TIGHT, rtol=0)


def test_where_each_keeps_a_part_a_lack_of_memory_ends_all_and_says_what_helps(many) -> None:
    other, short = (told(many(2) / "sharded_short", rank) for rank in range(2))
    assert short["status"] == 1 and "does not fit into the memory of rank 1" in short["problem"]
    assert other["status"] == LOST and other["problem"].startswith("rank 1 of 2 has ended at step 6 ")


def test_a_pair_that_alone_needs_more_memory_than_there_is_ends_all(many) -> None:
    other, short = (told(many(2) / "too_short", rank) for rank in range(2))
    assert short["status"] == 1 and "one pair of " in short["problem"]
    assert other["status"] == LOST and other["problem"].startswith("rank 1 of 2 has ended at step 6 ")


def test_after_the_loss_of_one_the_same_call_ends_with_the_same_weights(alone: Path, many) -> None:
    assert_close(final(many(2) / "killed_and_on"), final(alone / "batches_split_by_rows"), atol=TIGHT, rtol=0)


# --- places ---


def test_a_process_finds_its_place_in_torchruns_variables() -> None:
    variables = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}
    assert Seat.read(variables) == Seat(5, 8, 1, 4, "env://")
    assert Seat.read({}) is None
    assert Seat.read({"RANK": "0", "WORLD_SIZE": "1"}) is None


def test_a_process_alone_changes_nothing() -> None:
    alone, values, update = Ranks(), torch.ones(2), [np.arange(3), np.arange(2)]
    assert alone.sum(values) is values
    assert alone.share(update) == update
    assert alone.agree(3.5, "why") == (3.5, "why") and alone.agree(1, None) == (1, None)
    assert alone.first(State) == State() and alone.call() and alone.leads
