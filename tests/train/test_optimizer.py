"""Adam by its formula, decay of matrices only, moments by name."""

from __future__ import annotations

import threading

import pytest
import torch
from torch.testing import assert_close
from train.toys import model, optimizer

from nmt.checkpoint.tensors import weights
from nmt.errors import ModelError
from nmt.train.optimizer import adam, decayed, moments, restore, set_rate
from nmt.train.seeds import derive
from nmt.train.signals import stop_on_signals


def push(of: torch.nn.Module, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    for parameter in of.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=random, dtype=parameter.dtype)


def test_adam_is_the_papers_formula() -> None:
    trained = model().double()
    learner = optimizer(trained)
    expected = {name: tensor.clone() for name, tensor in weights(trained).items()}
    mean = {name: torch.zeros_like(tensor) for name, tensor in expected.items()}
    square = {name: torch.zeros_like(tensor) for name, tensor in expected.items()}
    for n in range(1, 6):
        push(trained, n)
        for name, parameter in trained.named_parameters():
            mean[name] = 0.9 * mean[name] + 0.1 * parameter.grad
            square[name] = 0.98 * square[name] + 0.02 * parameter.grad**2
            root = (square[name] / (1 - 0.98**n)).sqrt() + 1e-9
            expected[name] = expected[name] - 0.01 * n * mean[name] / (1 - 0.9**n) / root
        set_rate(learner, 0.01 * n)
        learner.step()
    assert_close(weights(trained), expected)


def test_decay_shrinks_matrices_and_spares_biases_norms_and_embeddings() -> None:
    trained = model()
    learner = adam(trained, betas=(0.9, 0.98), epsilon=1e-9, weight_decay=0.5)
    for parameter in trained.parameters():
        parameter.grad = torch.zeros_like(parameter)
    before = {name: tensor.clone() for name, tensor in weights(trained).items()}
    set_rate(learner, 0.1)
    learner.step()
    shrunk = {name for name, tensor in weights(trained).items() if not torch.equal(tensor, before[name])}
    names = {id(parameter): name for name, parameter in trained.named_parameters()}
    assert shrunk == {names[id(parameter)] for parameter in decayed(trained)[0]}
    assert not any("embedding" in name or "norm" in name or "bias" in name for name in shrunk)
    assert any("attention" in name for name in shrunk) and any("feedforward" in name for name in shrunk)


def test_moments_go_by_the_parameters_names_and_come_back() -> None:
    one, two = model(), model()
    first, second = optimizer(one), optimizer(two)
    push(one, 1)
    first.step()
    stored = {name: tensor.clone() for name, tensor in moments(first, one).items()}
    assert {"decoder.norm.weight.exp_avg", "decoder.norm.weight.exp_avg_sq"} < stored.keys()
    restore(second, two, stored)
    assert_close(moments(second, two), stored, atol=0, rtol=0)
    with pytest.raises(ModelError, match="other.weight"):
        restore(second, two, {"other.weight.exp_avg": torch.ones(1)})


def test_every_purpose_has_a_seed_of_its_own() -> None:
    seeds = {derive(seed, purpose) for seed in range(50) for purpose in ("init", "dropout", "data")}
    assert len(seeds) == 150
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert derive(1, "data") == 3642059021972582186


def test_outside_the_main_thread_nothing_listens_to_signals() -> None:
    said: list[str | None] = []

    def work() -> None:
        with stop_on_signals() as should_stop:
            said.append(should_stop())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert said == [None]
