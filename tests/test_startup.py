"""What starting up may cost: no library that is slow to import before it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

SLOW = {
    "torch",
    "numba",
    "sentencepiece",
    "sacrebleu",
    "sacremoses",
    "safetensors",
    "numpy",
    "pydantic",
    "rich",
    "tomli_w",
}


def loaded_by(code: str) -> set[str]:
    end = "; import sys; print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", code + end], capture_output=True, text=True, check=True
    )
    return set(ended.stderr.split())


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_load_nothing_slow(argument: str) -> None:
    assert loaded_by(f"from nmt.cli import main; main(['{argument}'])") & SLOW == set()


@pytest.mark.parametrize("command", ["train", "translate", "score", "recipe"])
def test_a_commands_help_loads_no_more_than_the_parser_does(command: str) -> None:
    assert loaded_by(f"from nmt.cli import main; main(['{command}', '--help'])") & SLOW <= {"pydantic"}


def test_importing_the_package_loads_nothing_slow_and_warns_of_nothing() -> None:
    assert loaded_by("import nmt") & SLOW == set()


def test_a_recipe_is_read_without_torch() -> None:
    loaded = loaded_by("import nmt.recipe, nmt.stages.run, nmt.stages.check, nmt.stages.propose")
    assert not loaded & {"torch", "sentencepiece", "sacrebleu", "sacremoses"}


def test_python_dash_m_is_the_same_program() -> None:
    ended = subprocess.run([sys.executable, "-m", "nmt", "--version"], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("nmt ") and ended.stderr == ""
