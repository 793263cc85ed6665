"""The stage as a recipe runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt.corpus.lines import read_lines
from nmt.errors import DataError
from nmt.recipe import Recipe
from nmt.stages.preprocess import run
from nmt.stages.stage import RunFolder


def recipe(folder: Path, **preprocess: object) -> Recipe:
    (folder / "a.x").write_text("Bal kor.\ndem\ngom\n")
    (folder / "a.y").write_text("Bal kor.\n\nban\n")
    (folder / "v").write_text("held\n")
    (folder / "t").write_text("gom\n")
    data = {
        "train": [{"source": folder / "a.x", "target": folder / "a.y"}],
        "valid": {"source": folder / "v", "target": folder / "v"},
        "test": [{"source": folder / "t", "target": folder / "v"}],
    }
    values = {"name": "toy", "languages": {"source": "en", "target": "de"}, "data": data, "train": {"steps": 1}}
    return Recipe.model_validate({**values, "preprocess": preprocess})


def test_the_stage_fills_its_folder(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    list(run(recipe(tmp_path), folder))
    assert sorted(path.name for path in folder.preprocess.iterdir()) == [
        "report.json",
        "train.source",
        "train.target",
        "valid.source",
        "valid.target",
    ]
    assert list(read_lines(folder.preprocess / "train.source")) == ["Bal kor."]


def test_moses_mode_writes_its_models_too(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    list(run(recipe(tmp_path, moses={"truecase": True}), folder))
    assert list(read_lines(folder.preprocess / "train.source")) == ["Bal kor ."]
    assert (folder.preprocess / "truecase.source").exists()
    assert (folder.preprocess / "truecase.target").exists()


def test_an_error_or_a_stop_leaves_the_last_result_and_nothing_half_written(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    list(run(recipe(tmp_path), folder))
    before = (folder.preprocess / "report.json").read_bytes()
    again = recipe(tmp_path)
    (tmp_path / "a.x").write_text("bal\n")
    with pytest.raises(DataError, match=r"a\.x has 1 line, "):
        list(run(again, folder))
    stopped = run(recipe(tmp_path), folder)
    next(stopped)
    stopped.close()  # type: ignore[attr-defined]
    assert [path.name for path in folder.path.iterdir()] == ["preprocess"]
    assert (folder.preprocess / "report.json").read_bytes() == before
