"""Methods of training, each by its key of the recipe: gone on with bit for bit, and what becomes of them on disk."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close
from train.runs import prepared, recipe
from train.toys import PAD, SCHEDULE, description, model, optimizer, pairs

from nmt.checkpoint.layout import LAST, pointed, read_validation
from nmt.checkpoint.load import load_translator
from nmt.checkpoint.tensors import read_tensors, weights
from nmt.events import Caution, Event
from nmt.model.layer_drop import layers_left_out
from nmt.score.config import BleuConfig, ChrfConfig
from nmt.score.metric import score_all
from nmt.stages import average, train
from nmt.stages.stage import RunFolder
from nmt.train.coins import toss
from nmt.train.ema import Ema
from nmt.train.events import Step
from nmt.train.fit import fit, learn
from nmt.train.freeze import freeze
from nmt.train.optimizer import sgd
from nmt.train.rules import Rules
from nmt.train.state import State
from nmt.train.store import Store

METHODS: dict[str, dict[str, Any]] = {
    "ema": {"decay": 0.9},
    "rdrop": {"rules": {"rdrop_alpha": 3.0}},
    "layer_drop": {"model": {"layer_drop": 0.4, "encoder_layers": 2}},
    "freeze": {"freeze": ["decoder"]},
}
ALL = (
    "train.ema_decay=0.9",
    "train.rdrop_alpha=3",
    "model.layer_drop=0.4",
    'train.freeze=["encoder"]',
    "train.subword_dropout=0.2",
)


@pytest.fixture(scope="module")
def before_training(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    prepared(folder)
    return folder


@pytest.fixture
def folder(before_training: Path, tmp_path: Path) -> Path:
    shutil.copytree(before_training, tmp_path / "toy")
    return tmp_path / "toy"


def trained(folder: Path, *changes: str) -> list[Event]:
    return list(train.run(recipe(folder, "train.validate_every=99", *changes), RunFolder(folder / "run")))


def toy(folder: Path, method: dict[str, Any], stop_after: int = 99) -> list[Step]:
    """Train a toy in `folder`, going on from what is there; a signal comes after `stop_after`."""
    trained = model(**method.get("model", {}))
    freeze(trained, method.get("freeze", ()))
    ema = Ema(trained, method["decay"]) if "decay" in method else None
    learner, kept = optimizer(trained), Store(folder, description(), {}, every=4, keep=99, ema=ema)
    torch.manual_seed(77)
    newest = kept.newest()
    state = kept.restore(newest, trained, learner) if newest else State()
    events = fit(
        trained,
        learner,
        pairs(),
        state,
        schedule=SCHEDULE,
        rules=Rules(steps=12, save_every=4, **method.get("rules", {})),
        store=kept,
        should_stop=lambda: "enough" if state.step >= stop_after else None,
        ema=ema,
    )
    return [event for event in events if isinstance(event, Step)]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*.safetensors"))}


@pytest.mark.parametrize("name", METHODS)
def test_a_training_stopped_in_the_middle_goes_on_bit_for_bit(name: str, tmp_path: Path) -> None:
    whole = toy(tmp_path / "whole", METHODS[name])
    parts = toy(tmp_path / "parts", METHODS[name], stop_after=6) + toy(tmp_path / "parts", METHODS[name])
    assert [(e.step, e.loss, e.norm) for e in parts] == [(e.step, e.loss, e.norm) for e in whole]
    both = contents(tmp_path / "whole"), contents(tmp_path / "parts")
    assert {path: both[1][path] for path in both[0]} == both[0]
    assert [e.loss for e in whole] != [e.loss for e in toy(tmp_path / "plain", {})] or name == "ema"


def test_methods_begin_go_on_and_end_while_a_model_learns(folder: Path) -> None:
    trained(folder, "train.steps=4")
    told = " ".join(event.text for event in trained(folder, "train.steps=6", *ALL) if isinstance(event, Caution))
    for change in ALL:
        assert change.partition("=")[0] in told
    trained(folder, "train.steps=9")
    assert pointed(folder / "run" / "checkpoints", LAST).name == "step-00000009"


def test_all_methods_together_go_on_bit_for_bit_in_the_middle_of_an_epoch(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "whole")
    whole = [event.loss for event in trained(tmp_path / "whole", *ALL) if isinstance(event, Step)]
    parts = [trained(folder, *ALL, f"train.steps={steps}") for steps in (2, 9, 12)]
    assert not any(isinstance(event, Caution) for events in parts for event in events)
    assert [event.loss for events in parts for event in events if isinstance(event, Step)] == whole
    assert {event.epoch for events in parts for event in events if isinstance(event, Step)} == {1, 2}
    last = "run/checkpoints/step-00000012"
    assert contents(folder / last) == contents(tmp_path / "whole" / last)
    assert not (folder / "run" / "sampled").exists()


def test_a_checkpoint_holds_the_average_and_validation_is_what_it_does(folder: Path) -> None:
    changes = ("train.ema_decay=0.9", "train.steps=40", "train.schedule.peak=1e-2", "train.save_every=99")
    trained(folder, *changes)
    last = pointed(folder / "run" / "checkpoints", LAST)
    mean, own = read_tensors(last / "model.safetensors"), read_tensors(last / "resume" / "trained.safetensors")
    assert list(mean) == list(own) and not any(torch.equal(mean[name], own[name]) for name in mean)
    hypotheses = load_translator(last, device="cpu").translate((folder / "valid.en").read_text().splitlines(), beam=1)
    references = (folder / "valid.de").read_text().splitlines()
    bleu, chrf = score_all(hypotheses, [references], [BleuConfig(), ChrfConfig()], "de")
    measured = read_validation(last)
    assert (measured["bleu"], measured["chrf"]) == (bleu.value, chrf.value) and chrf.value > 0
    run = RunFolder(folder / "run")
    list(average.run(recipe(folder, *changes, "average.count=1"), run))
    assert_close(read_tensors(run.model / "model.safetensors"), mean, rtol=0, atol=0)
    list(average.run(recipe(folder, *changes, "average.count=1", "average.weights=trained"), run))
    assert_close(read_tensors(run.model / "model.safetensors"), own, rtol=0, atol=0)


@pytest.mark.parametrize("cuts", [1, 2, 5])
def test_accumulated_batches_leave_out_the_same_layers_as_one_batch_does(cuts: int) -> None:
    data, updated = pairs(20, batch_tokens=1000), []
    for parts in (1, cuts):
        one = model(dropout=0.0, layer_drop=0.5, encoder_layers=2, decoder_layers=2).double()
        layers = list(layers_left_out(one))
        toss(layers, 1, 3)
        assert {layer.left_out for layer in layers} == {True, False}
        batches = [data.load(rows) for rows in np.array_split(np.arange(20), parts)]
        learn(one, sgd(one), batches, rate=0.5, rules=Rules(), pad=PAD)
        updated.append(weights(one))
    assert_close(updated[0], updated[1], atol=1e-9, rtol=0)
