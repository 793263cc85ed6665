"""Compiled layers compute what the others do, and nothing else is changed by them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close
from train.runs import prepared, recipe
from train.toys import PAD, SCHEDULE, model, optimizer, pairs, store

from nmt.checkpoint.tensors import read_tensors, weights
from nmt.errors import TrainingError
from nmt.model.config import LearnedConfig
from nmt.model.layer_drop import layers_left_out
from nmt.model.seq2seq import Seq2Seq
from nmt.stages import train
from nmt.train.compiled import compile_layers
from nmt.train.config import TrainConfig
from nmt.train.events import Step
from nmt.train.fit import fit
from nmt.train.optimizer import sgd
from nmt.train.rules import Rules
from nmt.train.state import State
from nmt.train.update import learn

BACKEND = "aot_eager"  # all of the compiler but its last part, which takes ten times as long


def test_a_compiler_that_does_not_work_is_an_error_at_once() -> None:
    def broken(*_: Any) -> Any:
        raise OSError("there is no compiler")

    with pytest.raises(TrainingError, match="train.compile = true: torch cannot compile for cpu here: there is no co"):
        compile_layers(model(), broken)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"guided_alignment": {"path": "links"}}, "guided_alignment"), ({"sharding": "full"}, "sharding")],
)
def test_what_cannot_be_compiled_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=f"{words}.*set compile = false"):
        TrainConfig(steps=1, compile=True, **change)


def test_layers_and_nothing_else_are_compiled() -> None:
    learned = model(position=LearnedConfig(length=20))
    compile_layers(learned, lambda graph, _: graph)
    changed = {name for name, module in learned.named_modules() if "forward" in vars(module)}
    assert changed == {"encoder.layers.0", "decoder.layers.0"}


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the compiler looks at whatever it meets, and hides what it is then warned of
def test_compiled_layers_have_the_losses_and_gradients_of_others_and_leave_names_and_dropout_alone(
    tmp_path: Path,
) -> None:
    """One test, since all of it is compiled once."""
    plain, compiled = model(dropout=0.0), model(dropout=0.0)
    names = list(weights(compiled))
    compile_layers(compiled, BACKEND)
    for rows in pairs().updates(0)[:3]:
        batches = [pairs().load(some) for some in rows]
        one, other = (learn(m, sgd(m), batches, rate=0.5, rules=Rules(), pad=PAD) for m in (plain, compiled))
        assert (one.loss, one.norm) == pytest.approx((other.loss, other.norm), rel=1e-5)
    assert_close(weights(compiled), weights(plain), rtol=1e-5, atol=1e-5)
    assert list(weights(compiled)) == names
    assert torch.equal(compiled.eval()(*example()), plain_twin(compiled)(*example()))  # translating isn't compiled

    straight = losses(tmp_path / "straight", 6)
    assert losses(tmp_path / "cut", 3) + losses(tmp_path / "cut", 6) == straight
    assert losses(tmp_path / "again", 6) == straight
    assert losses(tmp_path / "other", 6, seed=2) != straight

    dropped = model(layer_drop=0.5, dropout=0.0)
    compile_layers(dropped, BACKEND)
    first, *_ = layers_left_out(dropped)
    first.left_out = True
    learn(dropped, sgd(dropped), [pairs().load(pairs().updates(0)[0][0])], rate=0.1, rules=Rules(), pad=PAD)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_training_goes_on_with_compiled_layers_and_without_and_saves_the_same_tensors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.train.compiled.compile_layers", partial(compile_layers, backend=BACKEND))
    _, run = prepared(tmp_path)
    for before, steps, compiled in ((0, 2, False), (2, 4, True), (4, 5, False)):
        changes = f"train.steps={steps}", f"train.compile={str(compiled).lower()}"
        events = list(train.run(recipe(tmp_path, *changes), run))
        assert [event.step for event in events if isinstance(event, Step)] == list(range(before + 1, steps + 1))
        assert any("compiled" in str(event) for event in events) is compiled
    names = [set(read_tensors(folder / "model.safetensors")) for folder in run.checkpoints.glob("step-*")]
    assert len(names) == 3 and names[0] == names[1] == names[2]


def example() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    batch = pairs().load(pairs().updates(0)[0][0])
    return batch.src_BS, batch.keep_BS, batch.tgt_BT


def plain_twin(of: Seq2Seq) -> Seq2Seq:
    twin = model(dropout=0.0)
    twin.load_state_dict(of.state_dict())
    return twin.eval()


def losses(folder: Path, steps: int, seed: int = 1) -> list[float]:
    """Of the updates up to `steps`, with dropout, going on from what is in the folder."""
    trained = model(dropout=0.5)
    compile_layers(trained, BACKEND)
    learner, kept = optimizer(trained), store(folder)
    torch.manual_seed(seed)
    newest = kept.newest()
    state = kept.restore(newest, trained, learner) if newest else State()
    rules = Rules(steps=steps, save_every=3)
    events = fit(trained, learner, pairs(), state, schedule=SCHEDULE, rules=rules, store=kept)
    return [event.loss for event in events if isinstance(event, Step)]
