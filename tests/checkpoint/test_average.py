"""The mean of checkpoints: chosen by number or by score, in any order, of one model only."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from nmt.checkpoint.average import average, average_named, choose, finest, newest
from nmt.checkpoint.layout import read_description
from nmt.checkpoint.load import load_translator
from nmt.corpus.config import LanguagesConfig
from nmt.errors import ModelError, OutputError
from nmt.files import write_json
from nmt.model.config import DotConfig, TransformerConfig

NAME = "decoder.norm.weight"


@pytest.fixture
def three(save, tmp_path: Path) -> Path:
    """Checkpoints at steps 9, 10 and 100, all weights 1, 2 and 6."""
    for step, value in ((9, 1.0), (10, 2.0), (100, 6.0)):
        folder = save(tmp_path / "checkpoints" / f"step-{step}", step=step)
        stored = load_file(folder / "model.safetensors")
        save_file({name: torch.full_like(t, value) for name, t in stored.items()}, folder / "model.safetensors")
    return tmp_path / "checkpoints"


def test_the_last_two_are_the_last_by_number(three: Path) -> None:
    assert average(newest(three, 2))[NAME].unique().tolist() == [4.0]
    assert average(newest(three, 3))[NAME].unique().tolist() == [3.0]
    assert average(newest(three, 99))[NAME].unique().tolist() == [3.0]


def test_the_best_are_the_best_by_their_stored_score(three: Path) -> None:
    for step, loss, bleu in ((9, 3.0, 20.0), (10, 1.0, 20.0), (100, 2.0, None)):
        write_json(three / f"step-{step}" / "validation.json", {"step": step, "loss": loss, "bleu": bleu})
    assert [path.name for path in finest(three, 2, "loss")] == ["step-10", "step-100"]
    assert [path.name for path in finest(three, 1, "bleu")] == ["step-9"]
    with pytest.raises(ModelError, match="no checkpoint has a validation chrf"):
        finest(three, 1, "chrf")


@given(st.permutations([1, 2, 3, 4]))
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_order_of_naming_changes_no_bit(save, tmp_path: Path, order: list[int]) -> None:
    folders = [tmp_path / f"model-{seed}" for seed in (1, 2, 3, 4)]
    for seed, folder in enumerate(folders):
        if not folder.exists():
            save(folder, seed=seed)
    chosen = [folders[i - 1] for i in order]
    assert_close(average(chosen), average(folders), atol=0, rtol=0)


def test_the_mean_is_that_of_numpy_and_float32(save, tmp_path: Path) -> None:
    folders = [save(tmp_path / str(seed), seed=seed) for seed in range(5)]
    mean = average(folders)
    stored = [load_file(folder / "model.safetensors") for folder in folders]
    for name, tensor in mean.items():
        assert tensor.dtype == torch.float32
        assert_close(tensor, torch.stack([s[name] for s in stored]).mean(0), atol=1e-7, rtol=1e-6)


def test_averaging_one_checkpoint_changes_nothing(save, tmp_path: Path) -> None:
    folder = save(tmp_path / "one", seed=4)
    assert_close(average([folder]), load_file(folder / "model.safetensors"), atol=0, rtol=0)


def test_other_models_are_refused_by_name(save, tmp_path: Path) -> None:
    one = save(tmp_path / "one")
    wide = TransformerConfig(width=16, feedforward=16, encoder_layers=1, decoder_layers=1, attention=DotConfig(heads=2))
    with pytest.raises(ModelError, match="its model is not that of"):
        average([one, save(tmp_path / "wide", config=wide)])
    languages = LanguagesConfig(source="en", target="fr")
    with pytest.raises(ModelError, match="its languages is not that of"):
        average([one, save(tmp_path / "french", languages=languages)])
    with pytest.raises(ModelError, match="no checkpoints"):
        average([])


def test_an_average_is_a_complete_model_with_a_card(three: Path, tmp_path: Path) -> None:
    events = list(average_named([three], tmp_path / "mean", last=2))
    assert "step-10, step-100" in events[0].text
    assert read_description(tmp_path / "mean").origin.steps == (10, 100)
    card = (tmp_path / "mean" / "README.md").read_text()
    assert "en → de" in card and "mean of steps 10, 100" in card and "1,234" in card
    assert not (tmp_path / "mean" / "resume").exists()
    assert load_translator(tmp_path / "mean").translate([""]) == [""]
    again = list(average_named([three / "step-100", three / "step-10"], tmp_path / "again"))
    assert len(again) == 1
    one, two = (tmp_path / name / "model.safetensors" for name in ("mean", "again"))
    assert one.read_bytes() == two.read_bytes()


def test_a_folder_that_is_no_model_is_never_replaced(three: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("text")
    with pytest.raises(OutputError, match="not a model folder"):
        list(average_named([three], tmp_path / "mine", last=1))
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "text"


def test_a_folder_without_checkpoints_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="holds no checkpoint"):
        choose([tmp_path], last=3)
