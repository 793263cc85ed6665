"""A toy corpus with its recipe, and commands as typed: in this process, or in one of their own."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from nmt.cli import main

RECIPE = """\
name = "toy"

[languages]
source = "aa"
target = "bb"

[[data.train]]
source = "train.aa"
target = "train.bb"

[data.valid]
source = "valid.aa"
target = "valid.bb"

[[data.test]]
source = "test.aa"
target = "test.bb"

[bpe]
size = 300

[model]
width = 8
feedforward = 8
encoder_layers = 1
decoder_layers = 1
attention.heads = 2

[train]
steps = 4
curves = false
batch_tokens = 256
threads = 1
device = "cpu"
save_every = 2
validate_every = 4
valid_lines = 2
schedule.kind = "constant"

[average]
count = 2

[translate]
beam = 1
max_extra_tokens = 2
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str


Command = Callable[..., Ended]


@pytest.fixture
def nmt(capsys: pytest.CaptureFixture[str]) -> Command:
    """A command line, run in this process: ``nmt("run", file, "--dry-run")``."""

    def run(*arguments: object) -> Ended:
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        return Ended(status, *capsys.readouterr())

    return run


@pytest.fixture
def shell() -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """A line of bash in which `nmt` is this program, in a process of its own."""

    def run(line: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
        start = f'nmt() {{ "{sys.executable}" -m nmt "$@"; }}; '
        environment = {**os.environ, **variables}
        return subprocess.run(["bash", "-c", start + line], capture_output=True, env=environment, check=False)

    return run


@pytest.fixture
def pipe() -> Iterator[Callable[[str], Path]]:
    """What a shell makes of ``<(...)``: a name behind which a text can be read once, forwards."""
    readers: list[int] = []

    def holding(text: str) -> Path:
        reader, writer = os.pipe()
        readers.append(reader)
        with open(writer, "wb") as stream:
            stream.write(text.encode())
        return Path(f"/dev/fd/{reader}")

    yield holding
    for reader in readers:
        os.close(reader)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a toy corpus and toy.toml, which is also the current folder."""
    write_toy(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_toy(folder: Path) -> None:
    """Pairs of invented words, the target being the source reversed."""
    generator = random.Random(7)
    words = ["".join(generator.choices("bdfgklmnprst", k=2)) + vowel for vowel in "aeiou" for _ in range(6)]
    for name, lines in (("train", 80), ("valid", 6), ("test", 5)):
        sentences = [generator.choices(words, k=generator.randint(2, 6)) for _ in range(lines)]
        (folder / f"{name}.aa").write_text("".join(" ".join(s) + "\n" for s in sentences))
        (folder / f"{name}.bb").write_text("".join(" ".join(s[::-1]) + "\n" for s in sentences))
    (folder / "toy.toml").write_text(RECIPE)
