"""Two machines train as one process does. The machines are network namespaces, which only root may make."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.train.journal import read_journal

SETTINGS = ["--set", "model.dropout=0", "--set", "train.threads=1", "--set", "train.accumulate=2"]
NETWORK = "10.213.77"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def machines() -> Iterator[list[str]]:
    """The names of two namespaces that a cable connects; each has the address NETWORK.(1 + its number)."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("only root may make network namespaces, with ip")
    names = [f"nmt-{os.getpid()}-{number}" for number in range(2)]
    cable = [f"nmt{os.getpid() % 100_000}{end}" for end in "ab"]
    try:
        try:
            for name in names:
                ip("netns", "add", name)
            ip("link", "add", cable[0], "type", "veth", "peer", "name", cable[1])
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces cannot be made here: {error.stderr.decode().strip()}")
        for number, (name, end) in enumerate(zip(names, cable, strict=True)):
            ip("link", "set", end, "netns", name)
            ip("-n", name, "link", "set", end, "name", "wire")
            ip("-n", name, "addr", "add", f"{NETWORK}.{number + 1}/24", "dev", "wire")
            ip("-n", name, "link", "set", "wire", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)
        subprocess.run(["ip", "link", "delete", cable[0]], capture_output=True)


def losses(run: Path) -> list[float]:
    return [line["loss"] for line in read_journal(run / "journal.jsonl") if line["event"] in {"step", "validation"}]


@pytest.mark.slow
def test_two_machines_train_as_one_process_does(nmt, toy: Path, machines: list[str]) -> None:
    assert nmt("train", "toy.toml", "--run-dir", "one", *SETTINGS).status == 0
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
    meeting = ["--rdzv-backend", "c10d", "--rdzv-id", "7", "--rdzv-endpoint", f"{NETWORK}.1:29500"]
    started = []
    for number, name in enumerate(machines):
        host = "--rdzv-conf", f"is_host={int(number == 0)}"  # a namespace doesn't know its own name
        address = ["--local-addr", f"{NETWORK}.{number + 1}", *host]
        command = [*torchrun, *meeting, *address, "-m", "nmt", "train", "toy.toml", "--run-dir", "two", *SETTINGS]
        started.append(
            subprocess.Popen(
                ["ip", "netns", "exec", name, *command],
                env={**os.environ, "GLOO_SOCKET_IFNAME": "wire"},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        told = [process.communicate(timeout=200)[1] for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0, 0], told
    assert sum(text.count("train: done in ") for text in told) == 1, "one process tells"
    assert losses(Path("two")) == pytest.approx(losses(Path("one")), abs=1e-5)
