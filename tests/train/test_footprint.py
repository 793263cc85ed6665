"""Parameters and bytes that are told beforehand are those that training has."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from train.toys import CONFIG, SIZE

from nmt.batches.batch import collate
from nmt.model.config import PRESETS, LearnedConfig, TransformerConfig
from nmt.model.ways import Way
from nmt.train import optimizer as optimizers
from nmt.train.config import AdamConfig, MuonConfig, OptimizerConfig, SgdConfig
from nmt.train.footprint import activation_bytes, moments, parameters_of
from nmt.train.loss import Objective

PIECES = 37_000


def by_hand(config: TransformerConfig, pieces: int) -> tuple[int, int, int]:
    """Embeddings, encoder and decoder of the paper's sizes, one matrix for all three tables."""
    width, inner, pre = config.width, config.feedforward, config.norm == "pre"
    attention, ahead, norm = 4 * width**2, 2 * width * inner + width + inner, 2 * width
    encoder = config.encoder_layers * (attention + ahead + 2 * norm) + pre * norm
    return pieces * width, encoder, config.decoder_layers * (2 * attention + ahead + 3 * norm) + pre * norm


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_parameters_are_those_of_the_paper_by_part(preset: str) -> None:
    config = TransformerConfig(preset=preset)
    with torch.device("meta"):
        found = parameters_of(config.build(PIECES, PIECES, 0, blank=True))
    assert (found.embeddings, found.encoder, found.decoder) == by_hand(config, PIECES)
    assert found.trained == found.all == sum(by_hand(config, PIECES))
    told = {"base-2017": 65e6, "big-2017": 213e6}.get(preset)  # Vaswani et al. 2017, Table 3
    assert told is None or found.all == pytest.approx(told, rel=0.04)


@pytest.mark.parametrize("tie", ["all", "target", "none"])
def test_tables_count_once_where_they_are_shared_and_frozen_weights_are_told(tie: str) -> None:
    config = CONFIG.model_copy(update={"tie_embeddings": tie, "position": LearnedConfig(length=9)})
    model = config.build(SIZE, SIZE, 0)
    found = parameters_of(model)
    assert found.all == sum(parameter.numel() for parameter in model.parameters())
    tables = {"all": 1, "target": 2, "none": 3}[tie]
    assert found.embeddings == 8 * (tables * SIZE + 2 * 9)
    model.decoder.norm.requires_grad_(False)
    assert parameters_of(model).trained == found.all - 2 * 8


@pytest.mark.parametrize("config", [AdamConfig(), SgdConfig(), SgdConfig(momentum=0.9), MuonConfig()], ids=str)
def test_moments_are_as_many_as_the_optimizer_keeps(config: OptimizerConfig) -> None:
    model = CONFIG.build(SIZE, SIZE, 0)
    model.decoder.layers.requires_grad_(False)
    optimizer = config.build(model)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter) if parameter.requires_grad else None
    optimizer.step()
    kept = optimizers.moments(optimizer, model)
    assert moments(model, config) == sum(value.numel() for value in kept.values() if value.ndim)


@pytest.mark.parametrize("changes", [{}, {"dropout": 0.1}, {"norm": "post", "feedforward": 32}], ids=str)
def test_activations_are_about_what_is_kept_for_the_backward_pass(changes: dict[str, object]) -> None:
    config = TransformerConfig.model_validate(
        {"width": 64, "feedforward": 256, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
        | {"attention": {"heads": 2}}
        | changes
    )
    model = config.build(100, 100, 0).train()
    model.trains = Way.FUSED
    batch = collate([np.arange(4, 13)] * 40, [np.arange(4, 13)] * 40, bos=2, eos=3, pad=0)
    kept = {p.untyped_storage().data_ptr(): 0 for p in model.parameters()}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept.setdefault(tensor.untyped_storage().data_ptr(), tensor.untyped_storage().nbytes())
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        loss, _ = Objective(model)(batch, 0.1, 0)
    assert loss.requires_grad
    logits = 400 * 100 * 2 * 4  # gone when the loss is there
    told = activation_bytes(config, 0, 100, 400, "float32", on_gpu=False) - logits
    assert sum(kept.values()) == pytest.approx(told, rel=0.2)
