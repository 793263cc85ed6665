"""The ways to compute whole sentences: a mask, packing, or kernels that need none; all give the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from model.cases import PAD, POSITIONS, SIZES, build, name, pairs
from torch import Tensor
from torch.testing import assert_close

from nmt.model.attention.core import Attention, hide, past
from nmt.model.attention.dot import DotAttention
from nmt.model.config import DotConfig, TransformerConfig
from nmt.model.layers import LayerNorm, layer_norm
from nmt.model.position.core import Position
from nmt.model.seq2seq import Seq2Seq
from nmt.model.ways import Way, way

CPU = torch.device("cpu")


def config(position: Any, norm: str) -> TransformerConfig:
    sizes = {key: SIZES[key] for key in ("width", "feedforward", "encoder_layers", "decoder_layers")}
    return TransformerConfig(**sizes, attention=DotConfig(heads=2), position=position, norm=norm, dropout=0.0)


def outcome(model: Seq2Seq, trains: Way | None) -> tuple[Tensor, dict[str, Tensor]]:
    """The logits of all real tokens, and the gradient of some function of them."""
    model.train().zero_grad()
    model.trains = trains
    batch = pairs(extra_source=2, extra_target=1)
    logits_NV = model.project(model(batch.src_BS, batch.keep_BS, batch.tgt_BT))[batch.tgt_BT != PAD]
    logits_NV.square().sum().backward()
    return logits_NV.detach(), {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("position", POSITIONS, ids=name)
def test_all_ways_give_the_same_values_and_gradients(position: Any, norm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = build(config(position, norm))
    expected = outcome(model, Way.PLAIN)
    assert_close(outcome(model, Way.PACKED), expected, rtol=1e-9, atol=1e-9)
    assert_close(outcome(model, Way.FUSED), expected, rtol=1e-9, atol=1e-9)
    monkeypatch.setattr(DotAttention, "mix", DotAttention.fused)  # as on a GPU
    assert_close(outcome(model, Way.FUSED), expected, rtol=1e-9, atol=1e-9)
    assert_close(outcome(model.float(), Way.FUSED), outcome(model.float(), Way.PLAIN), rtol=1e-4, atol=1e-4)


def test_the_device_decides_the_way_and_only_training_takes_a_fast_one() -> None:
    assert [way(training, device) for training in (True, False) for device in ("cpu", "cuda")] == [
        Way.PACKED,
        Way.FUSED,
        Way.PLAIN,
        Way.PLAIN,
    ]
    model = build(config(POSITIONS[0], "pre"))
    assert model.way(CPU) is Way.PLAIN and model.way(torch.device("cuda:1")) is Way.PLAIN
    assert model.train().way(CPU) is Way.PACKED and model.way(torch.device("cuda:1")) is Way.FUSED
    model.trains = Way.FUSED
    assert model.way(CPU) is Way.FUSED and model.eval().way(CPU) is Way.PLAIN


def test_on_the_fused_way_kernels_are_given_no_mask_but_that_of_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Tensor | None] = []
    fused = DotAttention.fused

    def noted(self: DotAttention, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        given.append(bias)
        return fused(self, q, k, v, bias)

    monkeypatch.setattr(DotAttention, "mix", noted)
    model = build(config(POSITIONS[0], "pre"))
    outcome(model, Way.FUSED)
    assert len(given) == 2 + 2  # encoder, and attention to the source
    batch = pairs(extra_source=2)
    for bias_B11S in given:
        assert bias_B11S is not None
        assert torch.equal(bias_B11S, hide(batch.keep_BS[:, None, None], torch.float64))
        assert bias_B11S.stride(0) == 16 and bias_B11S.stride(-1) == 1  # of eight tokens


class Near(Position):
    """The nearer, the more."""

    def bias(self, q_BHQE: Tensor, keys: int, start: int = 0) -> Tensor:
        place_Q1 = torch.arange(start, start + q_BHQE.size(2))[:, None]
        return -(place_Q1 - torch.arange(keys)).abs()[None, None].to(q_BHQE.dtype)


@pytest.mark.parametrize("position", [Position, Near])
@pytest.mark.parametrize("length", [1, 2, 9])
def test_attention_that_hides_the_future_by_itself_equals_attention_with_a_mask(
    position: type[Position], length: int
) -> None:
    attention = DotAttention(16, 2, 4, 8, position()).double().train()
    generator = torch.Generator().manual_seed(3)
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    x_BTD = torch.randn(3, length, 16, dtype=torch.float64, generator=generator)
    masked = attention(x_BTD, x_BTD, hide(past(length, CPU), torch.float64))
    assert_close(attention.causal(x_BTD), masked)
    written_out = type("WrittenOut", (DotAttention,), {"mix": Attention.mix, "mix_past": Attention.mix_past})
    attention.__class__ = written_out
    assert_close(attention.causal(x_BTD), masked)


def test_a_norm_in_few_bits_is_the_norm_rounded_and_its_weights_learn_in_all_their_bits() -> None:
    norm = layer_norm(32)
    assert isinstance(norm, LayerNorm)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        norm.weight.normal_(1.0, 0.3, generator=generator)
    x_ND = torch.randn(50, 32, generator=generator).bfloat16()
    low_ND = norm.low(x_ND)
    low_ND.float().square().sum().backward()
    learned, norm.weight.grad = norm.weight.grad, None
    assert low_ND.dtype == torch.bfloat16 and learned is not None and learned.dtype == torch.float32
    exact_ND = norm(x_ND.float())
    exact_ND.square().sum().backward()
    assert_close(low_ND.float(), exact_ND, rtol=0.02, atol=0.02)
    assert_close(learned, norm.weight.grad, rtol=0.02, atol=0.5)


def test_attention_dropout_thins_the_weights_of_the_past_while_training_only() -> None:
    attention = DotAttention(16, 2, 8, 8, Position(), dropout=0.5)
    ones_BHTE = torch.ones(4, 2, 9, 8)
    torch.manual_seed(0)
    assert attention.train().mix_past(ones_BHTE, ones_BHTE, ones_BHTE, None).std() > 0.1
    assert_close(attention.eval().mix_past(ones_BHTE, ones_BHTE, ones_BHTE, None), ones_BHTE)
