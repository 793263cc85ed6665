"""Processes that are started together end together, and whoever failed first is named."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nmt.errors import TrainingError
from nmt.train.launch import LOST, launch

PYTHON = [sys.executable, "-S", "-c"]
START = "import os, sys, time, signal; rank = int(os.environ['RANK'])\n"
FOREVER = "time.sleep(60)"


def started(code: str, processes: int = 2, grace: float = 0.5) -> int:
    return launch([*PYTHON, START + code], processes, os.environ, grace)


def test_each_process_has_a_place_and_all_end_well(tmp_path: Path) -> None:
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NMT_MEETING")
    code = f"open(f'{tmp_path}/{{rank}}', 'w').write(' '.join(os.environ[name] for name in {names}))"
    assert started(code, processes=3) == 0
    said = [(tmp_path / str(rank)).read_text().split() for rank in range(3)]
    assert [words[:4] for words in said] == [[str(rank), "3", str(rank), "3"] for rank in range(3)]
    assert len({words[4] for words in said}) == 1 and said[0][4].startswith("file:///")


@pytest.mark.parametrize("failed", [0, 1, 2])
def test_a_killed_process_ends_the_others_within_the_grace_and_is_named(failed: int) -> None:
    began = time.monotonic()
    with pytest.raises(TrainingError, match=f"^rank {failed} of 3 was killed by SIGKILL$") as problem:
        started(f"if rank == {failed}: os.kill(os.getpid(), 9)\n{FOREVER}", processes=3)
    assert time.monotonic() - began < 10
    assert "goes on from the newest checkpoint" in problem.value.hint


def test_the_first_to_fail_is_named_with_its_last_words_not_those_that_lost_contact_with_it() -> None:
    with pytest.raises(TrainingError, match=r"^rank 1 of 3 ended with status 1, and said:\nno room$"):
        started(f"if rank == 1: time.sleep(0.3); sys.exit('no room')\nsys.exit({LOST})", processes=3)


def test_an_error_of_another_process_stands_in_the_message_once_as_such() -> None:
    words = "print('error: rank 0 hangs' if rank else '', 'hint: see there', sep=chr(10), file=sys.stderr)\n"
    with pytest.raises(TrainingError, match=r"^rank 0 of 2 was killed by SIGKILL; rank 1 said:\nrank 0 hangs$"):
        started(f"{words}if rank == 0: os.kill(os.getpid(), 9)\nsys.exit({LOST})")
    with pytest.raises(
        TrainingError, match=r"^rank 1 of 2 ended with status 1, and said:\nrank 0 hangs\nhint: see there$"
    ):
        started(f"{words}sys.exit(1 if rank else {LOST})")


def test_what_rank_0_says_of_its_own_end_is_enough() -> None:
    assert started(f"sys.exit(1 if rank == 0 else {LOST})") == 1
    assert started("sys.exit(143 if rank == 0 else 1)") == 143


def test_no_process_outlives_rank_0_by_more_than_the_grace() -> None:
    began = time.monotonic()
    assert started(f"if rank == 0: sys.exit(0)\n{FOREVER}") == 0
    assert time.monotonic() - began < 10


HUNG = """
sys.path[:0] = {path!r}
from nmt.train.launch import heed_launcher
heed_launcher(0)
def waits_for_nothing():
    os.read(os.pipe()[0], 1)
if rank == {hung}:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    waits_for_nothing()
time.sleep(0.2); sys.exit({lost})
"""


@pytest.mark.parametrize("hung", [0, 1])
def test_a_process_that_hangs_is_named_and_tells_where(hung: int, capfd: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    code = HUNG.replace("{path!r}", repr([p for p in sys.path if p])).replace("{hung}", str(hung))
    with pytest.raises(TrainingError, match=f"^rank {hung} of 2 hung, and was killed") as problem:
        started(code.replace("{lost}", str(LOST)))
    assert "waits_for_nothing" in (problem.value.problem if hung else capfd.readouterr().err)
    assert time.monotonic() - began < 10


def test_lost_contact_everywhere_is_a_failure_without_a_name() -> None:
    with pytest.raises(TrainingError, match="^the 2 processes have lost contact with each other$"):
        started(f"sys.exit({LOST})")


def test_a_signal_to_one_alone_that_could_not_save_is_named() -> None:
    with pytest.raises(TrainingError, match="^rank 1 of 2 ended with status 143$"):
        started(f"sys.exit(143) if rank else (time.sleep(0.2), sys.exit({LOST}))")


WAITING = """
import os, sys
from nmt.train.launch import launch
code = '''
import os, signal, sys, time
sys.path[:0] = {path!r}
from nmt.train.launch import heed_launcher
def end(number, frame):
    open(os.environ["HERE"] + "/ended-" + os.environ["RANK"], "w").write(str(number))
    sys.exit(128 + number)
signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGINT, end)
heed_launcher(0)
open(os.environ["HERE"] + "/ready-" + os.environ["RANK"], "w").close()
time.sleep(60)
'''
sys.exit(launch([sys.executable, "-c", code], 2, os.environ))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_signals_reach_every_process_and_the_launchers_death_does_too(number: int, tmp_path: Path) -> None:
    program = WAITING.replace("{path!r}", repr([path for path in sys.path if path]))
    launcher = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "HERE": str(tmp_path)})
    _until(lambda: len(list(tmp_path.glob("ready-*"))) == 2)
    launcher.send_signal(number)
    status = launcher.wait(timeout=20)
    _until(
        lambda: all(path.read_text() for path in tmp_path.glob("ended-*")) and len(list(tmp_path.glob("ended-*"))) == 2
    )
    told = signal.SIGTERM if number == signal.SIGKILL else number
    assert {path.read_text() for path in tmp_path.glob("ended-*")} == {str(int(told))}
    assert status == (-number if number == signal.SIGKILL else 128 + number)


def _until(happened) -> None:
    deadline = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)
