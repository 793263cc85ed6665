"""The stage score: what `nmt score` would say of each test set, kept in scores.json and in the model's card."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from nmt.checkpoint.layout import Description
from nmt.checkpoint.save import save_model
from nmt.corpus.config import LanguagesConfig
from nmt.errors import DataError
from nmt.events import Caution, Notice
from nmt.model.config import TransformerConfig
from nmt.recipe import Recipe, read
from nmt.score.config import named
from nmt.score.evaluate import evaluate
from nmt.stages import score
from nmt.stages.stage import RunFolder

SOURCE = "Das Schiff legt ab.\nEs schneite 3 Tage.\n"
REFERENCE = "The ship departs at dawn.\nIt was snowing for 3 days.\n"
HYPOTHESIS = "The ship departs at dawn.\nIt snowed for 4 days.\n"
RECIPE = """
name = "toy"
[languages]
source = "de"
target = "en"
[[data.train]]
source = "source"
target = "reference"
[data.valid]
source = "source"
target = "reference"
[[data.test]]
name = "first"
source = "source"
target = "reference"
[[data.test]]
name = "second"
source = "source"
target = ["reference", "reference2"]
[train]
steps = 1
curves = false
[score]
metrics = [{ kind = "bleu" }, { kind = "chrf", word_order = 2 }]
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    files = {"source": SOURCE, "reference": REFERENCE, "reference2": "A ship sails.\n\n", "toy.toml": RECIPE}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return read(tmp_path / "toy.toml")


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "run")
    folder.translations.mkdir(parents=True)
    for name in ("first", "second"):
        (folder.translations / f"{name}.en").write_text(HYPOTHESIS, encoding="utf-8")
    config = TransformerConfig.model_validate(
        {"width": 8, "feedforward": 8, "encoder_layers": 1, "decoder_layers": 1, "attention": {"heads": 1}}
    )
    (tmp_path / "vocabulary").write_bytes(b"pieces")
    description = Description(
        languages=LanguagesConfig(source="de", target="en"),
        model=config,
        shared_vocabulary=True,
        source_size=12,
        target_size=12,
        vocabulary_sha256={},
        max_source_tokens=32,
    )
    save_model(folder.model, config.build(12, 12, 0), description, {"vocabulary.model": tmp_path / "vocabulary"})
    return folder


def test_every_set_and_metric_is_scored_as_the_command_would(recipe: Recipe, run: RunFolder) -> None:
    events = list(score.run(recipe, run))
    data = json.loads((run.scores / "scores.json").read_text(encoding="utf-8"))
    assert [entry["name"] for entry in data["sets"]] == ["first", "second"]
    for entry, test in zip(data["sets"], recipe.data.test, strict=True):
        alone = evaluate(run.translations / f"{test.name}.en", test.target, named(["bleu", "chrf++"]), "en")
        assert [s["score"] for s in entry["scores"]] == [s.value for s in alone.scores]
        assert [s["signature"] for s in entry["scores"]] == [s.signature for s in alone.scores]
        assert entry["segments"] == 2
        assert all("|bs:1000|" in s["confidence"]["signature"] for s in entry["scores"])
    assert "nrefs:var" in data["sets"][1]["scores"][0]["signature"]
    assert sum(isinstance(event, Notice) for event in events) == 4
    assert any(isinstance(event, Caution) and "other numbers" in event.text for event in events)


def cells(row: str) -> list[str]:
    """A row of a Markdown table as its readers see it: a bar within a cell is escaped."""
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row)[1:-1]]


def test_the_card_shows_each_score_with_its_signature(recipe: Recipe, run: RunFolder) -> None:
    list(score.run(recipe, run))
    card = (run.model / "README.md").read_text(encoding="utf-8")
    rows = [cells(line) for line in card.splitlines() if line.startswith("| ")]
    for entry in json.loads((run.scores / "scores.json").read_text(encoding="utf-8"))["sets"]:
        for value in entry["scores"]:
            row = [entry["name"], value["name"], f"{value['score']:.2f}", f"`{value['signature']}`"]
            assert row in rows


def test_a_missing_translation_is_an_error_with_the_command(recipe: Recipe, run: RunFolder) -> None:
    (run.translations / "second.en").unlink()
    with pytest.raises(DataError, match="second.en") as caught:
        list(score.run(recipe, run))
    assert "nmt run" in caught.value.hint
    assert not (run.scores / "scores.json").exists()


def test_a_lost_line_gives_no_score(recipe: Recipe, run: RunFolder) -> None:
    (run.translations / "first.en").write_text("The ship departs at dawn.\n", encoding="utf-8")
    with pytest.raises(DataError, match="1 line.*has 2"):
        list(score.run(recipe, run))
