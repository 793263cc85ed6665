"""nmt translate --interactive: translations on stdout, everything else on stderr, and an end that is no error."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from search.models import learn_vocabulary, save_folder

import nmt as library

Command = Callable[..., Any]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("interactive")
    return save_folder(folder / "model", learn_vocabulary(folder))


def test_lines_are_answered_and_commands_obeyed(nmt: Command, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = "bal kor\n\n:beam 1\nbal kor\n:n-baem 3\n::bal\n:help\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    translator = library.load(model, "cpu")
    ended = nmt("translate", model, "--interactive", "--device", "cpu")
    assert ended.status == 0
    beam, greedy = translator.translate(["bal kor"]), translator.translate(["bal kor", ":bal"], beam=1)
    assert ended.out.splitlines() == [*beam, *greedy]
    assert "beam 1\n" in ended.err
    assert "error: :n-baem is not known\nhint: did you mean :" in ended.err
    assert ":settings" in ended.err


def test_what_a_translation_lacks_is_told_apart_from_it(
    nmt: Command, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("bal kor\n"))
    ended = nmt("translate", model, "--interactive", "--device", "cpu", "--sample", "--require", "Zürich")
    assert ended.out.splitlines() == library.load(model, "cpu").translate(["bal kor"], sample=True)
    assert "(in the translation, 'Zürich' is missing)\n" in ended.err


def test_bytes_that_are_no_text_become_u_fffd(nmt: Command, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for encoding, errors in (("utf-8", "strict"), ("ascii", "strict"), ("latin-1", "replace")):
        typed = io.TextIOWrapper(io.BytesIO(b"bal\xff\nk\xc3\xb6r\n"), encoding=encoding, errors=errors)
        monkeypatch.setattr(sys, "stdin", typed)
        ended = nmt("translate", model, "--interactive", "--device", "cpu")
        assert ended.status == 0
        assert ended.out.splitlines() == library.load(model, "cpu").translate(["bal\ufffd", "k\u00f6r"])


def test_quit_ends_it(nmt: Command, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(":quit\nbal\n"))
    ended = nmt("translate", model, "--interactive", "--quiet")
    assert (ended.status, ended.out, ended.err) == (0, "", "")


@pytest.mark.slow
def test_on_a_terminal_there_is_a_prompt_and_control_d_ends(model: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "nmt", "translate", str(model), "--interactive", "--threads", "1"]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        os.write(ours, b"bal kor\n\x04")
        out, err = process.communicate(timeout=120)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 0
    assert out.decode().splitlines() == library.load(model, "cpu").translate(["bal kor"])
    assert err.decode().count("> ") == 2
