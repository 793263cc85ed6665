"""The stage bpe: vocabularies, shards that hold the text, and a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nmt.batches.shards import Shard
from nmt.errors import DataError
from nmt.events import Caution, Event, Notice, Progress
from nmt.recipe import Recipe
from nmt.stages import bpe
from nmt.stages.stage import RunFolder
from nmt.subwords.vocabulary import Vocabulary

TRAIN = {
    "source": ["the train leaves at noon", "rain on old bridges 12"],
    "target": ["der zug fährt", "regen um zwölf"],
}
VALID = {"source": ["old  train", "", "Ж"], "target": ["graue dächer", "", "日"]}


def recipe(**bpe_settings: Any) -> Recipe:
    return Recipe.model_validate(
        {
            "name": "toy",
            "languages": {"source": "en", "target": "de"},
            "data": {"train": [{"source": "a", "target": "b"}], "valid": {"source": "a", "target": "b"}},
            "train": {"steps": 1},
            "model": {"kind": "transformer", "tie_embeddings": "target"},
            "bpe": {"size": 330, **bpe_settings},
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run folder as preprocessing leaves it."""
    run = RunFolder(tmp_path / "run")
    run.preprocess.mkdir(parents=True)
    for split, text, times in (("train", TRAIN, 50), ("valid", VALID, 1)):
        for side, lines in text.items():
            (run.preprocess / f"{split}.{side}").write_text("".join(f"{line}\n" for line in lines * times), "utf-8")
    return run


def run_stage(folder: RunFolder, **settings: Any) -> list[Event]:
    return list(bpe.run(recipe(**settings), folder))


def check_shards(folder: RunFolder, names: dict[str, str]) -> None:
    for split, text in (("train", {side: lines * 50 for side, lines in TRAIN.items()}), ("valid", VALID)):
        for side, lines in text.items():
            vocabulary = Vocabulary.load(folder.bpe / names[side])
            shard = Shard.open(folder.shards / f"{split}.{side}")
            shard.verify()
            assert shard.vocabulary_size == len(vocabulary)
            assert [vocabulary.decode(shard[i].tolist()) for i in range(len(shard))] == lines


def test_a_shared_vocabulary_and_shards_that_decode_to_the_text(folder: RunFolder) -> None:
    run_stage(folder)
    assert sorted(p.name for p in folder.bpe.iterdir()) == ["report.json", "vocabulary.model"]
    check_shards(folder, {"source": "vocabulary.model", "target": "vocabulary.model"})


def test_separate_vocabularies_are_learned_on_their_own_side(folder: RunFolder) -> None:
    run_stage(folder, shared=False)
    assert sorted(p.name for p in folder.bpe.iterdir()) == ["report.json", "source.model", "target.model"]
    check_shards(folder, {"source": "source.model", "target": "target.model"})
    source, target = (Vocabulary.load(folder.bpe / f"{side}.model") for side in ("source", "target"))
    assert any("<0x" in piece for piece in source.pieces("fährt"))
    assert not any("<0x" in piece for piece in target.pieces("fährt"))


def test_changing_the_sharing_leaves_no_old_vocabulary(folder: RunFolder) -> None:
    run_stage(folder)
    run_stage(folder, shared=False)
    assert not (folder.bpe / "vocabulary.model").exists()
    run_stage(folder)
    assert sorted(p.name for p in folder.bpe.glob("*.model")) == ["vocabulary.model"]


def test_running_twice_gives_the_same_bytes(folder: RunFolder) -> None:
    def contents() -> dict[str, bytes]:
        return {p.name: p.read_bytes() for f in (folder.bpe, folder.shards) for p in f.iterdir()}

    run_stage(folder)
    first = contents()
    run_stage(folder)
    assert contents() == first


def test_the_report_counts_lines_pieces_and_unknowns_per_side(folder: RunFolder) -> None:
    events = run_stage(folder)
    report = json.loads((folder.bpe / "report.json").read_text())
    shard = Shard.open(folder.shards / "train.target")
    assert report["train"]["target"] == {
        "lines": 100,
        "words": 300,
        "pieces": int(shard.lengths.sum()),
        "unknown": 0,
        "longest": int(shard.lengths.max()),
    }
    assert report["vocabulary"]["source"] == shard.vocabulary_size
    told = [event.text for event in events if isinstance(event, Notice)]
    assert any(text.startswith("train target: 100 lines") and "0.00 % unknown" in text for text in told)
    assert any(isinstance(event, Progress) and event.done == event.total == 100 for event in events)


def test_unknown_pieces_are_a_caution_that_names_the_side(folder: RunFolder) -> None:
    events = run_stage(folder, byte_fallback=False, size=100)
    report = json.loads((folder.bpe / "report.json").read_text())
    assert report["valid"]["source"]["unknown"] == 1
    assert any("valid source: 1 of" in event.text for event in events if isinstance(event, Caution))
    assert not any("train" in event.text and "unknown" in event.text for event in events if isinstance(event, Caution))


def test_sides_of_unequal_length_are_a_data_error(folder: RunFolder) -> None:
    (folder.preprocess / "valid.target").write_text("eine zeile\n")
    with pytest.raises(DataError, match=r"valid.source: has 3 lines, valid.target has 1"):
        run_stage(folder)


def test_no_training_text_is_a_data_error(folder: RunFolder) -> None:
    for side in ("source", "target"):
        (folder.preprocess / f"train.{side}").write_text("")
    with pytest.raises(DataError, match="hold no text"):
        run_stage(folder)


def test_more_lines_than_one_chunk_are_encoded_in_order(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bpe, "_CHUNK", 7)
    run_stage(folder)
    check_shards(folder, {"source": "vocabulary.model", "target": "vocabulary.model"})
