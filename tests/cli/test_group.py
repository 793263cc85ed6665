"""Training with many processes, as typed: `--processes`, and under torchrun."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nmt.checkpoint.layout import step_folders
from nmt.checkpoint.load import load_translator
from nmt.train.journal import read_journal

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
SETTINGS = ["--set", "model.dropout=0", "--set", "train.threads=1"]
LONG = [*SETTINGS, "--set", "train.steps=100k", "--set", "train.validate_every=100k", "--set", "train.save_every=20"]


def losses(run: Path) -> list[float]:
    return [line["loss"] for line in read_journal(run / "journal.jsonl") if line["event"] in {"step", "validation"}]


@contextmanager
def going(*command: object) -> Iterator[subprocess.Popen[bytes]]:
    """A command under way, killed at the end of the block if it still is."""
    words = [str(word) for word in command]
    with Path("told").open("wb") as told, subprocess.Popen(words, stdout=told, stderr=told) as process:
        try:
            yield process
        finally:
            process.kill()


def rank(number: int, folder: Path) -> int | None:
    """The process that is this rank of a training in `folder`."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
            here = os.readlink(entry / "cwd") == str(folder)
        except OSError:
            continue
        if here and f"RANK={number}".encode() in variables:
            return int(entry.name)
    return None


def until(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline, Path("told").read_text()
        time.sleep(0.02)


def bleu(run: str) -> list[float]:
    return [line["bleu"] for line in read_journal(Path(run) / "journal.jsonl") if line["event"] == "validation"]


def saved(run: str) -> list[str]:
    return [path.name for path in step_folders(Path(run) / "checkpoints")]


def test_processes_train_as_one_does_and_only_the_first_tells(nmt, shell, toy: Path) -> None:
    changes = [*SETTINGS, "--set", "train.accumulate=2", "--set", "train.optimizer.kind=muon"]
    assert nmt("train", "toy.toml", "--run-dir", "one", *changes).status == 0
    for sharding in ("none", "full"):
        more = [*changes, "--set", f"train.sharding={sharding}"]
        ended = shell(f"nmt train toy.toml --run-dir {sharding} --processes 2 {' '.join(more)}")
        told = ended.stderr.decode()
        assert ended.returncode == 0 and ended.stdout == b"", told
        assert "2 processes" in told and told.count("train: done in ") == told.count("running preprocess") == 1
        assert "warning" not in told.lower()
        assert losses(Path(sharding)) == pytest.approx(losses(Path("one")), abs=1e-5)
        assert saved(sharding) == saved("one")
        assert bleu(sharding) == pytest.approx(bleu("one"), abs=1e-9) and bleu("one")


@pytest.mark.slow
def test_an_error_in_many_processes_is_told_once(shell, toy: Path) -> None:
    ended = shell("nmt train toy.toml --processes 2 --set train.max_target_tokens=2")
    assert ended.returncode == 1
    assert [line for line in ended.stderr.decode().splitlines() if line.startswith(("error", "hint"))] == [
        "error: no training pair is left: all are longer than the limits, or there are none",
        "hint: raise train.max_source_tokens, train.max_target_tokens or train.batch_tokens",
    ]


def test_processes_of_processes_are_wrong_usage(nmt, toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    ended = nmt("train", "toy.toml", "--processes", "4")
    assert ended.status == 2 and "already one of 2 processes" in ended.err


def test_a_dry_run_starts_no_processes(nmt, toy: Path) -> None:
    assert nmt("run", "toy.toml", "--dry-run", "--processes", "2").out.startswith("preprocess: has not run yet")


@pytest.mark.gpu
def test_two_gpus_train_as_one_processor_does(nmt, shell, toy: Path) -> None:
    import torch

    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    changes = [*SETTINGS, "--set", "train.accumulate=3"]
    assert nmt("train", "toy.toml", "--run-dir", "one", *changes).status == 0
    ended = shell(f"nmt train toy.toml --run-dir two --processes 2 {' '.join(changes)} --set train.device=cuda")
    assert ended.returncode == 0, ended.stderr
    assert losses(Path("two")) == pytest.approx(losses(Path("one")), abs=1e-3)


@pytest.mark.slow
def test_a_whole_run_with_many_processes_ends_in_one_table_of_scores(shell, toy: Path) -> None:
    ended = shell("nmt run toy.toml --processes 2; nmt run toy.toml --processes 2 --quiet")
    assert ended.returncode == 0, ended.stderr
    first, second = ended.stdout.decode().split("test  BLEU")[1:]
    assert first == second and "model" in first


@pytest.mark.slow
@pytest.mark.parametrize("changes", [["--set", "train.accumulate=2"], ["--set", "train.batch_tokens=5000"]])
def test_torchrun_joins_and_every_epoch_ends_for_all(nmt, toy: Path, changes: list[str]) -> None:
    changes = [*SETTINGS, "--set", "train.steps=90", "--set", "train.epochs=3", *changes]
    assert nmt("train", "toy.toml", "--run-dir", "one", *changes).status == 0
    command = [*TORCHRUN, "-m", "nmt", "train", "toy.toml", "--run-dir", "two", *changes]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert losses(Path("two")) == pytest.approx(losses(Path("one")), abs=1e-5)


@pytest.mark.slow
def test_torchrun_with_nothing_to_train_ends_at_once(nmt, toy: Path) -> None:
    assert nmt("train", "toy.toml").status == 0
    ended = subprocess.run([*TORCHRUN, "-m", "nmt", "train", "toy.toml"], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0 and ended.stderr.count("train: nothing to do") == 1


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc")
@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_process_ends_the_command_which_names_it(nmt, toy: Path, killed: int) -> None:
    with going(sys.executable, "-m", "nmt", "train", "toy.toml", "--processes", 2, *LONG) as command:
        until(lambda: saved("runs/toy"))
        os.kill(rank(killed, toy) or 0, signal.SIGKILL)
        assert command.wait(timeout=30) == 1
    assert f"error: rank {killed} of 2 was killed by SIGKILL" in Path("told").read_text()
    assert rank(0, toy) is None and rank(1, toy) is None
    assert load_translator(Path("runs/toy/checkpoints") / saved("runs/toy")[-1], device="cpu").translate([""]) == [""]


@pytest.mark.slow
def test_torchrun_starts_all_anew_when_one_is_killed_and_training_goes_on(toy: Path) -> None:
    if not Path("/proc/self/environ").exists():
        pytest.skip("finds processes in /proc")
    command = [*TORCHRUN, "--max-restarts", "1", "-m", "nmt", "train", "toy.toml", *LONG]
    with going(*command, "--set", "train.minutes=0.2") as process:
        until(lambda: saved("runs/toy"))
        os.kill(rank(1, toy) or 0, signal.SIGKILL)
        assert process.wait(timeout=120) == 0, Path("told").read_text()
    assert "going on from runs/toy/checkpoints/step-" in Path("told").read_text()
    steps = [line["step"] for line in read_journal(Path("runs/toy/journal.jsonl")) if line["event"] == "step"]
    assert steps == sorted(set(steps)), "no update is told twice"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc")
@pytest.mark.parametrize("hung", [0, 1])
def test_a_process_that_hangs_ends_the_command_which_names_it(toy: Path, hung: int) -> None:
    changes = [*LONG, "--set", "train.wait_minutes=0.05"]
    with going(sys.executable, "-m", "nmt", "train", "toy.toml", "--processes", 2, *changes) as command:
        until(lambda: saved("runs/toy"))
        os.kill(rank(hung, toy) or 0, signal.SIGSTOP)
        assert command.wait(timeout=60) == 1
    told = Path("told").read_text()
    assert f"error: rank {hung} of 2 hung, and was killed" in told
    assert f"rank {hung} of 2 has not answered for 3 seconds: it hangs at step " in told
    assert rank(0, toy) is None and rank(1, toy) is None


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc")
def test_torchrun_starts_all_anew_when_one_hangs_and_training_goes_on(toy: Path) -> None:
    command = [*TORCHRUN, "--max-restarts", "1", "-m", "nmt", "train", "toy.toml", *LONG]
    with going(*command, "--set", "train.minutes=0.2", "--set", "train.wait_minutes=0.05") as process:
        until(lambda: saved("runs/toy"))
        os.kill(rank(1, toy) or 0, signal.SIGSTOP)
        assert process.wait(timeout=120) == 0, Path("told").read_text()
    assert "going on from runs/toy/checkpoints/step-" in Path("told").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_ends_all_and_the_same_command_goes_on(nmt, toy: Path, number: int) -> None:
    with going(sys.executable, "-m", "nmt", "train", "toy.toml", "--processes", 2, *LONG) as command:
        until(lambda: saved("runs/toy"))
        command.send_signal(number)
        assert command.wait(timeout=30) == 128 + number
    assert "interrupted" in Path("told").read_text() and "error" not in Path("told").read_text()
    last = saved("runs/toy")[-1]
    ended = nmt("train", "toy.toml", *LONG, "--set", f"train.steps={int(last.removeprefix('step-')) + 1}")
    assert ended.status == 0 and f"going on from runs/toy/checkpoints/{last}" in ended.err
