"""The stage translate: every test set, whole, with the model's opinion beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from search.models import learn_vocabulary, save_folder, sentences

import nmt
from nmt.errors import DataError
from nmt.events import Caution, Progress
from nmt.recipe import Recipe
from nmt.stages.stage import RunFolder
from nmt.stages.translate import run


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    folder = tmp_path_factory.mktemp("run")
    save_folder(folder / "model", learn_vocabulary(folder))
    return RunFolder(folder)


def recipe(folder: Path, tests: dict[str, bytes]) -> Recipe:
    for name, data in tests.items():
        (folder / name).write_bytes(data)
    pair = {"source": folder / "s", "target": folder / "t"}
    sets = [{"name": name, "source": folder / name, "target": folder / name} for name in tests]
    return Recipe.model_validate(
        {
            "name": "toy",
            "languages": {"source": "en", "target": "de"},
            "data": {"train": [pair], "valid": pair, "test": sets},
            "train": {"steps": 1, "device": "cpu"},
            "translate": {"beam": 2, "max_extra_tokens": 3},
        }
    )


def test_each_test_set_has_a_line_and_a_record_for_every_source_line(finished: RunFolder, tmp_path: Path) -> None:
    lines = [*sentences(12), "", "bal"]
    tests = {"one": "".join(f"{line}\n" for line in lines).encode(), "two": b"kor dem\n"}
    events = list(run(recipe(tmp_path, tests), finished))
    assert [event.done for event in events if isinstance(event, Progress)][-1] == 1
    names = ["one.de", "one.de.jsonl", "two.de", "two.de.jsonl"]
    assert sorted(path.name for path in finished.translations.iterdir()) == names
    expected = list(nmt.load(finished.path, "cpu").stream(lines, beam=2, max_extra_tokens=3))
    written = (finished.translations / "one.de").read_text(encoding="utf-8")
    assert written == "".join(f"{translation.text}\n" for translation in expected)
    records = (finished.translations / "one.de.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(record)["source"] for record in records] == lines
    assert [json.loads(r)["score"] for r in records] == pytest.approx([t.score for t in expected], abs=1e-5)


def test_a_set_that_cannot_be_read_leaves_the_old_translations(finished: RunFolder, tmp_path: Path) -> None:
    list(run(recipe(tmp_path, {"good": b"bal\n"}), finished))
    with pytest.raises(DataError, match="0xE9"):
        list(run(recipe(tmp_path, {"good": b"bal\n", "bad": b"caf\xe9\n"}), finished))
    assert sorted(path.name for path in finished.translations.iterdir()) == ["good.de", "good.de.jsonl"]


def test_a_recipe_without_test_sets_says_so(finished: RunFolder, tmp_path: Path) -> None:
    (caution,) = run(recipe(tmp_path, {}), finished)
    assert isinstance(caution, Caution)
    assert list(finished.translations.iterdir()) == []
