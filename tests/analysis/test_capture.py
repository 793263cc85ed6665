"""Recorded weights are those the model computes with, and recording changes nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from model.cases import BOS, EOS, MODELS, PAD, build, name
from torch import Tensor
from torch.testing import assert_close

from nmt.analysis.capture import KINDS, Mix, Place, capture, places, recording, swapped
from nmt.batches.batch import Batch, collate
from nmt.errors import ModelError


def batch() -> Batch:
    sources, targets = [[7, 8, 9, 10, 11], [12], [13, 14, 15]], [[5, 6, 7], [8, 9, 10, 11, 12], []]
    return collate(sources, targets, bos=BOS, eos=EOS, pad=PAD)


@pytest.mark.parametrize("config", MODELS, ids=name)
def test_recording_leaves_every_output_as_it_was_bit_for_bit(config) -> None:
    model, pairs = build(config), batch()
    before = model(pairs.src_BS, pairs.keep_BS, pairs.tgt_BT)
    with recording(model):
        during = model(pairs.src_BS, pairs.keep_BS, pairs.tgt_BT)
    after = model(pairs.src_BS, pairs.keep_BS, pairs.tgt_BT)
    assert torch.equal(before, during) and torch.equal(before, after)


@pytest.mark.parametrize("config", MODELS, ids=name)
def test_an_output_made_of_the_recorded_weights_is_the_models_own(config) -> None:
    model, pairs = build(config), batch()
    expected = model(pairs.src_BS, pairs.keep_BS, pairs.tgt_BT)
    found = capture(model, pairs)

    def make(place: Place, _: Mix) -> Mix:
        return lambda q_BHQE, k_BHKE, v_BHKE, bias_BHQK: found[place.kind][place.layer] @ v_BHKE

    with swapped(places(model), make):
        assert_close(model(pairs.src_BS, pairs.keep_BS, pairs.tgt_BT), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("config", MODELS, ids=name)
def test_rows_sum_to_one_and_padding_and_the_future_get_nothing(config) -> None:
    model, pairs = build(config), batch()
    found = capture(model, pairs)
    layers = {"encoder": config.encoder_layers, "decoder": config.decoder_layers, "cross": config.decoder_layers}
    for kind in KINDS:
        assert found[kind].shape[:3] == (layers[kind], 3, config.attention.heads)
        assert_close(found[kind].sum(-1), torch.ones_like(found[kind][..., 0]), atol=1e-9, rtol=0)
    padding = ~pairs.keep_BS[None, :, None, None]
    for kind in ("encoder", "cross"):
        assert not found[kind].masked_select(padding.expand_as(found[kind])).any()
    assert not found["decoder"].triu(1).any()


def test_the_model_is_left_as_it_was_even_after_an_error() -> None:
    model, pairs = build(MODELS[0]).train(), batch()
    capture(model, pairs)
    assert model.training and not any("mix" in place.module.__dict__ for place in places(model))
    with pytest.raises(IndexError):
        capture(model, replace(pairs, src_BS=pairs.src_BS + 1000))
    assert model.training and not any("mix" in place.module.__dict__ for place in places(model))


def test_swaps_may_stand_inside_each_other() -> None:
    model, pairs = build(MODELS[0]), batch()
    expected = model(pairs.src_BS, pairs.keep_BS, pairs.tgt_BT)

    def silent(place: Place, mix: Mix) -> Mix:
        def nothing(q_BHQE: Tensor, k_BHKE: Tensor, v_BHKE: Tensor, bias_BHQK: Tensor | None) -> Tensor:
            return mix(q_BHQE, k_BHKE, v_BHKE, bias_BHQK) * 0

        return nothing

    with swapped(places(model), silent):
        silenced = model(pairs.src_BS, pairs.keep_BS, pairs.tgt_BT)
        assert not torch.allclose(silenced, expected)
        with recording(model) as notes:
            assert torch.equal(model(pairs.src_BS, pairs.keep_BS, pairs.tgt_BT), silenced)
        assert torch.equal(model(pairs.src_BS, pairs.keep_BS, pairs.tgt_BT), silenced)
    assert len(notes) == len(places(model)) and all(len(kept) == 1 for kept in notes.values())
    assert torch.equal(model(pairs.src_BS, pairs.keep_BS, pairs.tgt_BT), expected)


def test_a_model_without_attention_is_named() -> None:
    with pytest.raises(ModelError, match="Linear has no attention"):
        places(torch.nn.Linear(2, 2))  # type: ignore[arg-type]
