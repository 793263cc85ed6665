"""The end of the process: quick, but nothing that matters is left undone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")


def ended(before: str, *arguments: str, **how: object) -> subprocess.CompletedProcess[str]:
    """The command line run in a process that has loaded torch and then did something else."""
    code = f"import sys, atexit, threading, torch; from nmt.cli.process import run; {before}; run()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], stderr=subprocess.PIPE, text=True, check=False, **how
    )  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize(("arguments", "status"), [(["--version"], 0), (["no-such-command"], 2)], ids=["0", "2"])
def test_the_status_is_the_commands_and_what_is_to_happen_at_the_end_does(arguments: list[str], status: int) -> None:
    result = ended("atexit.register(print, 'at the end')", *arguments, stdout=subprocess.PIPE)
    assert result.returncode == status
    assert result.stdout.endswith("at the end\n")


def test_a_thread_that_still_works_is_waited_for() -> None:
    thread = "threading.Thread(target=lambda: (threading.main_thread().join(), print('done'))).start()"
    result = ended(thread, "--version", stdout=subprocess.PIPE)
    assert result.returncode == 0 and result.stdout.endswith("done\n")


@pytest.mark.skipif(not FULL.exists(), reason="no device is always full here")
def test_output_that_cannot_be_written_is_no_success() -> None:
    with FULL.open("w") as full:
        assert ended("atexit.register(print, 'lost')", "--version", stdout=full).returncode != 0
