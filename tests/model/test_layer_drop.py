"""A layer left out is a layer that isn't there."""

from __future__ import annotations

import pytest
import torch
from model.cases import PAD, pairs
from torch.testing import assert_close

from nmt.model.config import DotConfig, TransformerConfig
from nmt.model.layer_drop import layers_left_out
from nmt.model.seq2seq import Seq2Seq

SIZES = {"width": 16, "feedforward": 24, "attention": DotConfig(heads=2), "dropout": 0.0}


def built(norm: str = "pre", layers: int = 3, **changes: float) -> Seq2Seq:
    config = TransformerConfig(norm=norm, encoder_layers=layers, decoder_layers=layers, **SIZES, **changes)
    return config.build(23, 23, PAD).double()


def states(model: Seq2Seq) -> torch.Tensor:
    batch = pairs()
    return model(batch.src_BS, batch.keep_BS, batch.tgt_BT)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_leaving_out_the_middle_layers_is_the_model_without_them(norm: str) -> None:
    whole, small = built(norm, layer_drop=0.5).train(), built(norm, layers=2).train()
    others = {
        name.replace("layers.2.", "layers.1."): weight
        for name, weight in whole.state_dict().items()
        if "layers.1." not in name
    }
    small.load_state_dict(others)
    left = list(layers_left_out(whole))
    assert len(left) == 6
    left[1].left_out = left[4].left_out = True
    assert_close(states(whole), states(small), rtol=0, atol=0)


def test_names_and_numbers_are_those_of_an_ordinary_model_and_evaluation_uses_all_layers() -> None:
    ordinary, dropping = built().eval(), built(layer_drop=0.3).eval()
    assert list(dropping.state_dict()) == list(ordinary.state_dict())
    for layer in layers_left_out(dropping):
        layer.left_out = True
    assert_close(states(dropping), states(ordinary), rtol=0, atol=0)


def test_without_layer_drop_no_layer_can_be_left_out() -> None:
    assert not list(layers_left_out(built()))


@pytest.mark.parametrize("chosen", [[0], [3], [0, 1, 2], [3, 4, 5], [0, 1, 2, 3, 4, 5]], ids=str)
def test_every_weight_has_a_gradient_and_that_of_layers_left_out_is_zero(chosen: list[int]) -> None:
    model = built(layer_drop=0.5).train()
    layers = list(layers_left_out(model))
    for number in chosen:
        layers[number].left_out = True
    states(model).square().sum().backward()
    left = {id(p) for number in chosen for p in layers[number].parameters()}
    if {3, 4, 5} <= set(chosen):  # then nothing has read what the encoder gave
        left |= {id(p) for p in [*model.encoder.layers.parameters(), *model.encoder.norm.parameters()]}
    for name, p in model.named_parameters():
        assert p.grad is not None, name
        assert bool(p.grad.any()) != (id(p) in left), name
