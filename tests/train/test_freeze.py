"""Frozen weights stay as they are, to the bit, whatever else acts on weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from train.toys import SCHEDULE, description, model, optimizer, pairs

from nmt.checkpoint.layout import step_name
from nmt.checkpoint.tensors import read_tensors, weights
from nmt.errors import TrainingError
from nmt.model.config import LearnedConfig
from nmt.train.ema import Ema
from nmt.train.events import Step
from nmt.train.fit import fit
from nmt.train.freeze import PARTS, freeze
from nmt.train.optimizer import adam, moments, sgd
from nmt.train.rules import Rules
from nmt.train.state import State
from nmt.train.store import Store


def train(folder: Path, patterns: tuple[str, ...], steps: int, decay: float | None = None) -> set[str]:
    """Train to `steps` in `folder`, going on from what is there; the names of what was frozen."""
    trained = model()
    frozen = freeze(trained, patterns) if patterns else []
    ema = Ema(trained, decay) if decay else None
    learner = adam(trained, betas=(0.9, 0.98), epsilon=1e-9, weight_decay=0.1)
    kept = Store(folder, description(), {}, every=4, keep=99, ema=ema)
    torch.manual_seed(77)
    newest = kept.newest()
    state = kept.restore(newest, trained, learner) if newest else State()
    rules = Rules(steps=steps, save_every=4, clip_norm=0.5)
    list(fit(trained, learner, pairs(), state, schedule=SCHEDULE, rules=rules, store=kept, ema=ema))
    return set(frozen)


def saved(folder: Path, step: int, file: str = "model.safetensors") -> dict[str, torch.Tensor]:
    return read_tensors(folder / step_name(step) / file)


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> set[str]:
    return {name for name in one if torch.equal(one[name], other[name])}


@pytest.mark.parametrize("decay", [None, 0.9])
@pytest.mark.parametrize("patterns", [("encoder",), ("embeddings", "norms"), ("decoder.layers.0.*", "*.query.weight")])
def test_frozen_weights_stay_and_all_others_move(patterns: tuple[str, ...], decay: float | None, tmp_path) -> None:
    frozen = train(tmp_path, patterns, 8, decay)
    before, after = weights(model()), saved(tmp_path, 8)
    assert frozen and same(before, after) == frozen
    remembered = {name.rpartition(".")[0] for name in saved(tmp_path, 8, "resume/optimizer.safetensors")}
    assert remembered == set(before) - frozen
    if decay:
        assert set(saved(tmp_path, 8, "resume/trained.safetensors")) == set(before) - frozen


def test_parts_may_be_frozen_and_thawed_while_a_model_learns(tmp_path: Path) -> None:
    train(tmp_path, (), 4)
    frozen = train(tmp_path, ("encoder",), 8)
    assert same(saved(tmp_path, 4), saved(tmp_path, 8)) == frozen
    train(tmp_path, (), 12)
    assert not same(saved(tmp_path, 8), saved(tmp_path, 12))
    assert {name.rpartition(".")[0] for name in saved(tmp_path, 12, "resume/optimizer.safetensors")} == set(
        weights(model())
    )


def test_freezing_is_training_with_the_others_gradients_alone() -> None:
    whole, part = model(dropout=0.0).double(), model(dropout=0.0).double()
    frozen = freeze(part, ["feedforward"])
    losses = []
    for one in (whole, part):
        learner = optimizer(one)
        first = next(e for e in fit(one, learner, pairs(), State(), schedule=SCHEDULE, rules=Rules(steps=1)))
        assert isinstance(first, Step)
        losses.append(first.loss)
        if one is part:
            assert not {name.rpartition(".")[0] for name in moments(learner, one)} & set(frozen)
    assert losses[0] == losses[1]
    moved = {name for name in weights(whole) if torch.equal(weights(whole)[name], weights(part)[name])}
    assert moved == set(weights(whole)) - set(frozen)


def test_a_tied_matrix_is_frozen_by_either_name_and_plain_descent_heeds_it() -> None:
    for part in ("embeddings", "output"):
        tied = model()
        assert freeze(tied, [part]) == ["encoder.embedding.weight"]
        assert len(sgd(tied).param_groups[0]["params"]) == len(list(tied.parameters())) - 1
    assert freeze(model(tie_embeddings="none"), ["output"]) == ["output.weight"]


@pytest.mark.parametrize("part", PARTS)
def test_every_part_is_some_of_the_weights(part: str) -> None:
    whole = model(position=LearnedConfig(length=16), tie_embeddings="none")
    frozen = freeze(whole, [part])
    assert 0 < len(frozen) < len(list(whole.parameters()))


def test_positions_belong_to_no_layer_and_the_parts_are_the_model() -> None:
    learned = {"position": LearnedConfig(length=16), "tie_embeddings": "none"}
    found = [
        set(freeze(model(**learned), [part])) for part in ("encoder", "decoder", "embeddings", "positions", "output")
    ]
    assert sum(map(len, found)) == len(set.union(*found)) == len(list(model(**learned).parameters()))


def test_a_pattern_that_matches_nothing_is_refused_with_the_parts_there_are() -> None:
    with pytest.raises(TrainingError, match="'encodr' is no part of this model") as problem:
        freeze(model(), ["norms", "encodr"])
    assert "encoder, decoder, embeddings, output" in problem.value.hint and "positions" not in problem.value.hint
    with pytest.raises(TrainingError, match="nothing is left to train"):
        freeze(model(), ["*"])
