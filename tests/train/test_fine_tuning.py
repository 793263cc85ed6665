"""Fine-tuning: training starts from another model's weights, with its vocabulary, and goes on by itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from train.runs import RECIPE, prepared, recipe

from nmt.checkpoint.layout import read_description
from nmt.checkpoint.load import load_model
from nmt.checkpoint.report import about
from nmt.checkpoint.tensors import weights
from nmt.errors import ModelError, RecipeError, TrainingError
from nmt.events import Caution, Event, Notice, StageFresh
from nmt.files import sha256
from nmt.recipe import read
from nmt.stages.check import problems
from nmt.stages.propose import Wish, propose
from nmt.stages.run import choose, plan, run_stages
from nmt.stages.stage import RunFolder
from nmt.train.events import Step


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A toy corpus, its run, and a second corpus whose recipe starts from that run's model."""
    folder = tmp_path_factory.mktemp("parent")
    prepared(folder)
    perform(folder, "run", last="average")
    text = RECIPE.replace('"toy"', '"tuned"').replace('"train.', '"new.')
    text = text.replace("steps = 12\n", 'steps = 4\nstart_from = "run"\n')
    (folder / "tuned.toml").write_text(text.replace("size = 280", "size = 999"))
    for language in ("en", "de"):
        lines = (folder / f"train.{language}").read_text().splitlines()
        (folder / f"new.{language}").write_text("".join(f"{line} zq {line}\n" for line in lines[:40]))
    return folder


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    shutil.copytree(trained, tmp_path / "toys")
    return tmp_path / "toys"


def perform(folder: Path, run: str, *changes: str, last: str = "train", force: tuple[str, ...] = ()) -> list[Event]:
    name = "toy.toml" if run == "run" else "tuned.toml"
    return list(run_stages(recipe(folder, *changes, name=name), RunFolder(folder / run), choose(last=last), force))


def parameters(model: Path) -> dict[str, torch.Tensor]:
    return weights(load_model(model)[1])


def test_without_a_step_of_any_size_the_model_is_its_parent(folder: Path) -> None:
    perform(folder, "tuned", "train.schedule.peak=1e-30", "train.steps=1", "model.dropout=0.4", "average.count=1")
    perform(
        folder,
        "tuned",
        "train.schedule.peak=1e-30",
        "train.steps=1",
        "model.dropout=0.4",
        "average.count=1",
        last="average",
    )
    old, new = parameters(folder / "run" / "model"), parameters(folder / "tuned" / "model")
    assert old.keys() == new.keys()
    assert all(torch.equal(old[name], new[name]) for name in old)


def test_optimizer_schedule_and_steps_begin_anew_and_the_vocabulary_is_the_parents(folder: Path) -> None:
    events = perform(folder, "tuned")
    steps = [event for event in events if isinstance(event, Step)]
    assert [event.step for event in steps] == [1, 2, 3, 4]
    first = next(event for event in perform(folder, "scratch", "train.start_from=") if isinstance(event, Step))
    assert steps[0].loss < first.loss
    assert sha256(folder / "tuned" / "bpe" / "vocabulary.model") == sha256(folder / "run" / "bpe" / "vocabulary.model")
    assert any("weights start from" in event.text for event in events if isinstance(event, Notice))


def test_the_first_loss_is_what_the_parent_gives_on_that_batch(folder: Path) -> None:
    """An independent reference: the parent's own loss on the same update, without dropout."""
    from nmt.stages.train import training_pairs
    from nmt.subwords.vocabulary import Vocabulary
    from nmt.train.loss import sequence_loss

    events = perform(folder, "tuned", "model.dropout=0.0", "train.label_smoothing=0.0")
    first = next(event for event in events if isinstance(event, Step))
    run = RunFolder(folder / "tuned")
    vocabulary = Vocabulary.load(run.bpe / "vocabulary.model")
    pairs, _ = training_pairs(recipe(folder, name="tuned.toml"), run, vocabulary)
    batch = pairs.load(pairs.updates(0)[0][0])
    model = load_model(folder / "run" / "model")[1]
    with torch.no_grad():
        states = model(batch.src_BS, batch.keep_BS, batch.tgt_BT)
        loss, _ = sequence_loss(states, model.output_weight_VD, batch.out_BT, smoothing=0.0, pad=vocabulary.pad)
    assert first.loss == pytest.approx(float(loss) / batch.tokens, rel=1e-6)


def test_a_restart_goes_on_from_its_own_checkpoints_bit_for_bit(folder: Path) -> None:
    perform(folder, "whole", "train.steps=8")
    perform(folder, "broken", "train.steps=4")
    rest = perform(folder, "broken", "train.steps=8")
    assert [event.step for event in rest if isinstance(event, Step)] == [5, 6, 7, 8]
    assert not any("weights start from" in event.text for event in rest if isinstance(event, Notice))
    last = "checkpoints/step-00000008/model.safetensors"
    assert (folder / "whole" / last).read_bytes() == (folder / "broken" / last).read_bytes()


def test_the_origin_is_in_the_model_and_on_its_card(folder: Path) -> None:
    perform(folder, "tuned", last="average")
    parent = read_description(folder / "run" / "model")
    origin = read_description(folder / "tuned" / "model").origin.parent
    assert origin is not None and parent.origin.parent is None
    assert (origin.name, origin.steps) == ("toy", parent.origin.steps)
    assert origin.weights_sha256 == sha256(folder / "run" / "model" / "model.safetensors")
    card = (folder / "tuned" / "model" / "README.md").read_text()
    assert f"**Fine-tuned from**: toy (mean of steps 8, 12, weights sha256 {origin.weights_sha256[:16]})" in card
    assert ("started from", f"toy, weights sha256 {origin.weights_sha256[:16]}…") in about(folder / "tuned")
    assert "parent" not in (folder / "run" / "model" / "model.json").read_text()


def test_all_that_does_not_fit_is_named_at_once_before_anything_is_made(folder: Path) -> None:
    changes = (
        "model.width=32",
        "model.encoder_layers=2",
        "preprocess.normalization=nfkc",
        "bpe.shared=false",
        "model.tie_embeddings=target",
    )
    with pytest.raises(RecipeError) as problem:
        perform(folder, "tuned", *changes)
    for text in (
        "model.width 16 → 32",
        "model.encoder_layers 1 → 2",
        'preprocess.normalization "nfc" → "nfkc"',
        "bpe.shared true → false",
    ):
        assert text in problem.value.problem
    assert not (folder / "tuned" / "preprocess").exists() and not (folder / "tuned" / "recipe.toml").exists()
    named = list(problems(recipe(folder, *changes, name="tuned.toml"), RunFolder(folder / "tuned")))
    assert problem.value.problem in named


@pytest.mark.parametrize("place", ["nowhere", "run/preprocess"])
def test_what_is_no_model_is_refused(place: str, folder: Path) -> None:
    with pytest.raises(ModelError):
        perform(folder, "tuned", f"train.start_from={folder / place}")


def test_a_run_cannot_start_from_itself(folder: Path) -> None:
    perform(folder, "tuned")
    with pytest.raises(RecipeError, match="the very folder that is trained into"):
        perform(folder, "tuned", f"train.start_from={folder / 'tuned'}")


def test_a_changed_parent_is_noticed(folder: Path) -> None:
    perform(folder, "tuned")
    perform(folder, "run", "train.steps=16", last="average")
    tuned, run = recipe(folder, name="tuned.toml"), RunFolder(folder / "tuned")
    with pytest.raises(TrainingError, match=r"another beginning"):
        plan(tuned, run, choose(last="train"))
    stages = {stage.name: reasons for stage, reasons in plan(tuned, run, choose(last="train"), force={"train"})}
    assert stages["preprocess"] == stages["bpe"] == []
    assert any("train.start_from.weights changed" in reason for reason in stages["train"])
    anew = [event.step for event in perform(folder, "tuned", force=("train",)) if isinstance(event, Step)]
    assert anew == [1, 2, 3, 4]


@pytest.mark.parametrize(("before", "after"), [("run", ""), ("", "run")])
def test_checkpoints_of_another_beginning_are_not_gone_on_from(before: str, after: str, folder: Path) -> None:
    perform(folder, "tuned", f"train.start_from={before and folder / before}", "bpe.size=280")
    with pytest.raises(TrainingError, match="another beginning"):
        perform(folder, "tuned", f"train.start_from={after and folder / after}", "bpe.size=280")


def test_a_copy_of_the_parent_elsewhere_is_the_same_parent(folder: Path) -> None:
    perform(folder, "tuned")
    shutil.copytree(folder / "run" / "model", folder / "copy")
    shutil.rmtree(folder / "run")
    events = perform(folder, "tuned", f"train.start_from={folder / 'copy'}", "train.steps=6")
    assert [event.stage for event in events if isinstance(event, StageFresh)] == ["preprocess", "bpe"]
    assert [event.step for event in events if isinstance(event, Step)] == [5, 6]
    assert not any(isinstance(event, Caution) for event in events)


def test_other_languages_are_told(folder: Path) -> None:
    events = perform(folder, "tuned", "languages.target=nl")
    assert any("translates en → de" in event.text for event in events if isinstance(event, Caution))


def test_a_proposed_recipe_fits_the_model_and_trains(folder: Path) -> None:
    sets = (folder / "valid.en", folder / "valid.de")
    wish = Wish(folder / "new.en", folder / "new.de", valid=sets, test=sets, start_from=folder / "run")
    (folder / "sub").mkdir()
    list(propose(wish, folder / "sub" / "tuned.toml"))
    proposed = read(
        folder / "sub" / "tuned.toml", ["train.steps=2", "train.schedule.warmup_steps=1", "train.device=cpu"]
    )
    run = RunFolder(folder / "proposed")
    assert list(problems(proposed, run)) == []
    steps = [event.step for event in run_stages(proposed, run, choose(last="train")) if isinstance(event, Step)]
    assert steps == [1, 2]


@pytest.mark.slow
def test_the_truecase_model_is_the_parents_too(folder: Path) -> None:
    moses = ("preprocess.moses.truecase=true", "train.steps=2", "average.count=1")
    perform(folder, "run2", *moses, "train.start_from=", "bpe.size=300", last="average")
    for language in ("en", "de"):
        path = folder / f"new.{language}"
        path.write_text(path.read_text() + "".join(f"one Berlin {i} Berlin\n" for i in range(9)))
    perform(folder, "tuned", *moses, f"train.start_from={folder / 'run2'}")
    for side in ("source", "target"):
        ours, theirs = (folder / place / f"truecase.{side}" for place in ("tuned/preprocess", "run2/model"))
        assert ours.read_bytes() == theirs.read_bytes()
        assert "Berlin" not in ours.read_text() and len(ours.read_text()) > 100
    assert "Berlin" in (folder / "tuned" / "preprocess" / "train.source").read_text()
