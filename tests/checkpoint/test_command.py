"""nmt checkpoint show and nmt checkpoint average."""

from __future__ import annotations

from pathlib import Path

import pytest
from nmt.cli import main

from nmt.files import write_json


@pytest.fixture
def run(save, tmp_path: Path) -> Path:
    for step in (9, 10, 100):
        folder = save(tmp_path / "run" / "checkpoints" / f"step-{step}", seed=step, step=step)
        write_json(folder / "validation.json", {"step": step, "loss": 1 / step, "bleu": float(step % 10)})
    return tmp_path / "run"


def test_show_prints_the_model_and_the_checkpoints_on_stdout(run: Path, capsys) -> None:
    assert main(["checkpoint", "show", str(run)]) == 0
    out = capsys.readouterr().out
    assert "languages" in out and "en → de" in out
    assert [line.split()[0] for line in out.splitlines()[-3:]] == ["step-9", "step-10", "step-100"]


def test_average_takes_the_last_the_best_or_those_named(run: Path, tmp_path: Path, capsys) -> None:
    assert main(["checkpoint", "average", str(run), "--last", "2", "--output", str(tmp_path / "a")]) == 0
    assert "step-10, step-100" in capsys.readouterr().err
    assert main(["checkpoint", "average", str(run), "--best", "1", "--output", str(tmp_path / "b")]) == 0
    assert "step-9" in capsys.readouterr().err
    named = [str(run / "checkpoints" / name) for name in ("step-100", "step-10")]
    assert main(["checkpoint", "average", *named, "--output", str(tmp_path / "c")]) == 0
    one, two = (tmp_path / name / "model.safetensors" for name in "ac")
    assert one.read_bytes() == two.read_bytes()
    assert main(["checkpoint", "show", str(tmp_path / "a")]) == 0


def test_contradictory_and_missing_choices_are_wrong_usage(run: Path, tmp_path: Path) -> None:
    output = ["--output", str(tmp_path / "out")]
    assert main(["checkpoint", "average", str(run), "--last", "2", "--best", "2", *output]) == 2
    assert main(["checkpoint", "average", str(run), str(run), "--last", "2", *output]) == 2
    assert main(["checkpoint", "average", str(run), *output]) == 2
    assert not (tmp_path / "out").exists()


def test_only_what_ctranslate2_reads_is_compared(run: Path, tmp_path: Path, capsys) -> None:
    export = ["checkpoint", "export", str(run), str(tmp_path / "out"), "--to", "huggingface", "--verify", "x"]
    assert main(export) == 2
    assert "--verify goes with --to ctranslate2 only" in capsys.readouterr().err


def test_a_folder_without_a_model_is_two_lines(tmp_path: Path, capsys) -> None:
    assert main(["checkpoint", "show", str(tmp_path)]) == 1
    problem, hint = capsys.readouterr().err.splitlines()
    assert problem.startswith(f"error: {tmp_path}: holds no model") and hint.startswith("hint: ")
