"""nmt rescore: one number a pair, the number search would give."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from nmt.cli import main
from search.models import learn_vocabulary, save_folder, sentences

import nmt


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rescore")
    return save_folder(folder / "model", learn_vocabulary(folder))


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    for name, lines in (("source", [*sentences(9), ""]), ("target", [*sentences(9, seed=2), ""])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path / "source", tmp_path / "target"


def rescore(model: Path, source: Path | str, target: Path | str, *arguments: str) -> int:
    command = ["rescore", str(model), "--source", str(source), "--target", str(target), "--device", "cpu"]
    return main([*command, *arguments])


@pytest.mark.parametrize("penalty", ["none", "gnmt:0.6", "average:1"])
def test_each_pair_has_one_score(
    model: Path, files: tuple[Path, Path], penalty: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rescore(model, *files, "--length-penalty", penalty) == 0
    numbers = list(map(float, capsys.readouterr().out.split()))
    texts = [path.read_text(encoding="utf-8").split("\n")[:-1] for path in files]
    expected = nmt.load(model, "cpu").rescore(*texts, length_penalty=penalty)
    assert numbers == pytest.approx([c.score for c in expected], abs=1e-5)
    assert numbers[-1] == 0


def test_the_default_is_the_sum_of_log_probabilities(
    model: Path, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    rescore(model, *files)
    numbers = list(map(float, capsys.readouterr().out.split()))
    rescore(model, *files, "--format", "jsonl")
    rows = [json.loads(row) for row in capsys.readouterr().out.splitlines()]
    assert numbers == pytest.approx([sum(row["token_log_probabilities"]) for row in rows], abs=1e-4)
    assert numbers == pytest.approx([row["log_probability"] for row in rows], abs=1e-5)


def test_the_scores_of_a_translation_are_those_it_was_given(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    translator = nmt.load(model, "cpu")
    found = [
        t
        for t in translator.stream(sentences(60, 20, seed=4))
        if tuple(translator.target_vocabulary.pieces(t.text)) == t.best.tokens
    ]
    assert len(found) > 5
    for name, lines in (("s", [t.source for t in found]), ("t", [t.text for t in found])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    rescore(model, tmp_path / "s", tmp_path / "t", "--length-penalty", "gnmt:0.6")
    numbers = list(map(float, capsys.readouterr().out.split()))
    assert numbers == pytest.approx([t.score for t in found], abs=1e-4)


def test_lines_longer_than_the_models_limit_are_scored_whole_and_named(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["bal kor", "dem gom. " * 60, "", "bal " * 200]
    for name in "st":
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert rescore(model, tmp_path / "s", tmp_path / "t") == 0
    captured = capsys.readouterr()
    expected = nmt.load(model, "cpu").rescore(lines, lines, length_penalty="none")
    assert list(map(float, captured.out.split())) == pytest.approx([c.score for c in expected], abs=1e-3)
    (warning,) = captured.err.splitlines()
    assert warning.startswith("warning: a source of more than 64 tokens") and warning.endswith(": lines 2, 4")


def test_unequal_counts_are_named_before_anything_is_written(
    model: Path, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    files[1].write_text("bal\n", encoding="utf-8")
    assert rescore(model, *files) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "10 lines" in captured.err
    assert "has 1;" in captured.err


@pytest.mark.parametrize(("lines", "status"), [(10, 0), (9, 1), (12, 1)])
def test_one_side_may_come_from_stdin(
    model: Path,
    files: tuple[Path, Path],
    lines: int,
    status: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rescore(model, files[0], files[0])
    expected = capsys.readouterr().out
    sources = [*files[0].read_text(encoding="utf-8").split("\n")[:-1], "bal", "bal"][:lines]
    stdin = "".join(f"{line}\n" for line in sources).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    assert rescore(model, files[0], "-") == status
    captured = capsys.readouterr()
    if status == 0:
        assert captured.out == expected
    else:
        assert f"stdin has {lines};" in captured.err


def test_both_sides_from_stdin_are_wrong_usage(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rescore(model, "-", "-") == 2
    assert "stdin" in capsys.readouterr().err


def test_invalid_bytes_are_named_before_anything_is_written(
    model: Path, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    files[1].write_bytes(files[1].read_bytes().replace(b"\n\n", b" caf\xe9\n\n"))
    assert rescore(model, *files) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"{files[1]}:9: byte " in captured.err
