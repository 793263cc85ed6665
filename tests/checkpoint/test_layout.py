"""Which folder is meant, and in which order checkpoints stand."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.checkpoint.layout import BEST, LAST, resolve, step_folders, step_name, step_number
from nmt.checkpoint.save import clean, point, prune
from nmt.errors import ModelError


@given(st.integers(0, 10**9))
def test_a_steps_name_tells_its_number(step: int) -> None:
    assert step_number(Path("runs") / step_name(step)) == step


def some(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "model.json").write_text("{}")


def test_checkpoints_stand_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    some(tmp_path, "step-9", "step-100", "step-10", "step-00000011", "step-12.partial", "steps-1", "step-x")
    (tmp_path / "step-99").mkdir()
    assert [path.name for path in step_folders(tmp_path)] == ["step-9", "step-10", "step-00000011", "step-100"]


def test_a_run_means_its_model_else_its_best_else_its_last(tmp_path: Path) -> None:
    checkpoints = tmp_path / "checkpoints"
    with pytest.raises(ModelError, match="holds no model"):
        resolve(tmp_path)
    some(checkpoints, "step-1", "step-2", "step-3")
    assert resolve(tmp_path).name == "step-3"
    point(checkpoints, LAST, checkpoints / "step-2")
    assert resolve(tmp_path).name == resolve(checkpoints).name == "step-2"
    point(checkpoints, BEST, checkpoints / "step-1")
    assert resolve(tmp_path).name == "step-1"
    some(tmp_path, "model")
    assert resolve(tmp_path) == tmp_path / "model"
    assert resolve(checkpoints / "step-3") == checkpoints / "step-3"


def test_a_folder_of_runs_names_those_that_hold_a_model(tmp_path: Path) -> None:
    (tmp_path / "begun" / "checkpoints").mkdir(parents=True)
    (tmp_path / "notes.txt").touch()
    some(tmp_path / "trained" / "checkpoints", "step-1")
    with pytest.raises(ModelError) as problem:
        resolve(tmp_path)
    assert problem.value.hint == f"name one that is in it: {tmp_path / 'trained'}"
    for name in ("a", "b", "c"):
        some(tmp_path / name, "model")
    with pytest.raises(ModelError) as problem:
        resolve(tmp_path)
    assert problem.value.hint.endswith(" or 1 more") and "begun" not in problem.value.hint


def test_a_pointer_to_a_checkpoint_that_is_gone_is_passed_over(tmp_path: Path) -> None:
    some(tmp_path, "step-1")
    point(tmp_path, BEST, tmp_path / "step-7")
    assert resolve(tmp_path).name == "step-1"


@pytest.mark.parametrize("text", ["{}", '{"step": "../../etc"}', '{"step": 5}', "[]"])
def test_a_pointer_that_names_no_checkpoint_is_an_error(text: str, tmp_path: Path) -> None:
    some(tmp_path, "step-1")
    (tmp_path / BEST).write_text(text)
    with pytest.raises(ModelError, match="names no checkpoint"):
        resolve(tmp_path)


def test_a_missing_folder_and_a_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such folder") as gone:
        resolve(tmp_path / "nowhere")
    assert gone.value.hint == "check the path; a run lies in runs/NAME"
    (tmp_path / "file").write_text("text")
    with pytest.raises(ModelError, match="is a file; a model is a folder"):
        resolve(tmp_path / "file")


def test_the_folder_that_was_meant_is_named(tmp_path: Path) -> None:
    (tmp_path / "sample").mkdir()
    (tmp_path / "sampler.txt").touch()
    with pytest.raises(ModelError, match="no such folder") as gone:
        resolve(tmp_path / "sampel")
    assert gone.value.hint == f"did you mean {tmp_path / 'sample'}?"


def test_pruning_removes_all_others_and_cleaning_all_leftovers(tmp_path: Path) -> None:
    some(tmp_path, "step-1", "step-2", "step-3", "step-4.partial")
    (tmp_path / ".best.json.77.partial").write_text("{")
    (tmp_path / "step-2" / "resume").mkdir()
    (tmp_path / "step-2" / "resume" / ".state.json.77.partial").write_text("{")
    assert [path.name for path in prune(tmp_path, [tmp_path / "step-2"])] == ["step-1", "step-3"]
    assert len(clean(tmp_path)) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["step-2"]
    assert list((tmp_path / "step-2" / "resume").iterdir()) == []
