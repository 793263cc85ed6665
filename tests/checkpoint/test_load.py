"""A model folder is complete and checks itself."""

from __future__ import annotations

import json
import pickle
import resource
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model.cases import MODELS, name
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from nmt.checkpoint.device import choose
from nmt.checkpoint.load import load_model, load_translator
from nmt.checkpoint.save import save_model
from nmt.checkpoint.tensors import weights
from nmt.errors import ModelError, NmtError, OutputError, TrainingError
from nmt.files import read_json, write_json
from nmt.model.config import DotConfig, TransformerConfig

LINES = ["abcd efgh", "", "hgfe dcba abcd", "never seen: ß 1 2"]


def test_a_loaded_model_is_the_saved_one(save, tmp_path: Path) -> None:
    folder = save(tmp_path / "one", seed=3)
    _, loaded = load_model(folder)
    again = tmp_path / "two"
    description, _ = load_model(folder)
    save_model(again, loaded, description, {"vocabulary.model": folder / "vocabulary.model"})
    assert (again / "model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()
    assert (again / "model.json").read_bytes() == (folder / "model.json").read_bytes()
    assert not loaded.training


@pytest.mark.parametrize("config", MODELS, ids=name)
def test_every_kind_of_model_comes_back(config: Any, save, tmp_path: Path) -> None:
    folder = save(tmp_path / "m", config=config)
    description, loaded = load_model(folder)
    assert description.model == config
    assert_close(weights(loaded), load_file(folder / "model.safetensors"), atol=0, rtol=0)
    assert len(load_translator(folder, device="cpu").translate(LINES)) == len(LINES)


@pytest.mark.parametrize(("tie", "copies"), [("all", 1), ("target", 2), ("none", 3)])
def test_tied_weights_are_stored_once_and_tied_after_loading(tie: str, copies: int, save, tmp_path: Path) -> None:
    config = TransformerConfig(
        width=8, feedforward=16, encoder_layers=1, decoder_layers=1, attention=DotConfig(heads=2), tie_embeddings=tie
    )
    _, loaded = load_model(save(tmp_path / "m", config=config))
    stored = load_file(tmp_path / "m" / "model.safetensors")
    size = loaded.output_weight_VD.size(0)
    assert sum(tensor.size(0) == size for tensor in stored.values()) == copies
    assert (loaded.encoder.embedding.weight is loaded.decoder.embedding.weight) == (tie == "all")
    assert (loaded.output_weight_VD is loaded.decoder.embedding.weight) == (tie != "none")
    assert_close(weights(loaded), stored, atol=0, rtol=0)


def test_all_files_may_be_read_by_whom_any_new_file_may(model: Path, tmp_path: Path) -> None:
    (tmp_path / "new").touch()
    modes = {path.name: path.stat().st_mode & 0o777 for path in model.iterdir()}
    assert set(modes.values()) == {(tmp_path / "new").stat().st_mode & 0o777}, modes


def test_loading_draws_no_random_numbers(model: Path) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    load_model(model)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_folder_alone_translates(model: Path, tmp_path: Path) -> None:
    expected = load_translator(model, device="cpu").translate(LINES)
    elsewhere = tmp_path / "elsewhere" / "copy"
    shutil.copytree(model, elsewhere)
    shutil.rmtree(model)
    assert load_translator(str(elsewhere), device="auto").translate(LINES) == expected
    assert len(expected) == len(LINES) and expected[1] == ""


def test_another_vocabulary_of_the_same_name_is_refused(model: Path, other_vocabulary: Path) -> None:
    shutil.copyfile(other_vocabulary, model / "vocabulary.model")
    with pytest.raises(ModelError, match="not the file this model was trained with"):
        load_model(model)


def test_a_missing_vocabulary_is_named(model: Path) -> None:
    (model / "vocabulary.model").unlink()
    with pytest.raises(ModelError, match="vocabulary.model: is missing"):
        load_model(model)


def test_a_description_that_tells_another_size_is_refused(model: Path) -> None:
    description = read_json(model / "model.json")
    write_json(model / "model.json", {**description, "source_size": 299})
    with pytest.raises(ModelError, match="has 300 pieces; model.json tells 299"):
        load_model(model)


def change(folder: Path, **tensors: torch.Tensor | None) -> None:
    stored = {**load_file(folder / "model.safetensors"), **tensors}
    save_file({name: t for name, t in stored.items() if t is not None}, folder / "model.safetensors")


def test_weights_of_another_shape_a_missing_and_an_extra_one_are_named(model: Path) -> None:
    name = "decoder.norm.weight"
    change(model, **{name: torch.ones(9)})
    with pytest.raises(ModelError, match=f"{name} is 9; model.json describes 8"):
        load_model(model)
    change(model, **{name: None})
    with pytest.raises(ModelError, match=f"{name} is missing"):
        load_model(model)
    change(model, **{name: torch.ones(8), "decoder.more": torch.ones(1)})
    with pytest.raises(ModelError, match=r"decoder\.more is no part of the model"):
        load_model(model)


def test_weights_of_another_vocabulary_size_are_refused(model: Path) -> None:
    change(model, **{"encoder.embedding.weight": torch.zeros(301, 8)})
    with pytest.raises(ModelError, match="is 301 x 8; model.json describes 300 x 8"):
        load_model(model)


@given(st.floats(0, 1, exclude_max=True))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_cut_off_weights_are_one_clear_line(model: Path, part: float) -> None:
    whole = model / "model.safetensors"
    data = whole.read_bytes()
    try:
        whole.write_bytes(data[: int(part * len(data))])
        with pytest.raises(ModelError, match="is cut off|is damaged") as problem:
            load_model(model)
        assert "\n" not in problem.value.problem
    finally:
        whole.write_bytes(data)


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_a_missing_file_is_named(name: str, model: Path) -> None:
    (model / name).unlink()
    with pytest.raises(ModelError, match=name):
        load_translator(model)


class Bomb:
    def __reduce__(self):
        return (Path.touch, (Path("exploded"),))


def test_a_pickle_is_refused_and_never_opened(model: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.pt").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ModelError, match="pickled PyTorch file"):
        load_translator(tmp_path / "model.pt")
    (model / "model.safetensors").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ModelError, match="pickled PyTorch file"):
        load_translator(model)
    assert not (tmp_path / "exploded").exists()


def test_a_checkpoint_of_a_newer_format_asks_for_a_newer_nmt(model: Path) -> None:
    write_json(model / "model.json", {**read_json(model / "model.json"), "format": 99, "nmt": "9.9"})
    with pytest.raises(ModelError, match=r"format = 99 was written by nmt 9\.9") as problem:
        load_model(model)
    assert "upgrade" in problem.value.hint


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": "x"}'])
def test_a_damaged_description_is_one_clear_line(text: str, model: Path) -> None:
    (model / "model.json").write_text(text)
    with pytest.raises(ModelError, match=r"model\.json") as problem:
        load_model(model)
    assert "\n" not in problem.value.problem


def test_a_missing_device_is_one_line(model: Path) -> None:
    with pytest.raises(NmtError, match="'cuda:99'.*this machine has"):
        load_translator(model, device="cuda:99")
    with pytest.raises(NmtError, match="none of auto, cpu, cuda"):
        choose("gpu")


def test_files_say_nothing_of_a_device(model: Path) -> None:
    assert b"cuda" not in (model / "model.safetensors").read_bytes()
    assert "device" not in json.loads((model / "model.json").read_text())


def test_a_weight_that_is_not_finite_is_not_saved_and_the_old_folder_stays(model: Path) -> None:
    before = (model / "model.safetensors").read_bytes()
    description, loaded = load_model(model)
    with torch.no_grad():
        loaded.output_weight_VD[3, 3] = torch.inf
    with pytest.raises(TrainingError, match="not finite"):
        save_model(model, loaded, description, {})
    assert (model / "model.safetensors").read_bytes() == before
    assert [path.name for path in model.parent.iterdir()] == ["model"]


def test_a_disk_without_room_leaves_the_old_folder_as_it_was(model: Path) -> None:
    description, loaded = load_model(model)
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, hard))
    try:
        with pytest.raises(OutputError, match="cannot be written") as problem:
            save_model(model, loaded, description, {"vocabulary.model": model / "vocabulary.model"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "room" in problem.value.hint
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before
    assert [path.name for path in model.parent.iterdir()] == ["model"]
