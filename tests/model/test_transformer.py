"""The Transformer against the paper: sizes, structure, ties, weights before training."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from model.cases import BOS, EOS, PAD, build, pairs
from torch import Tensor, nn
from torch.testing import assert_close

from nmt.model.config import TransformerConfig
from nmt.model.dropout import Dropout
from nmt.model.position.sinusoidal import codes
from nmt.model.transformer import Transformer

BASE = "base-2017"
TABLE_3: dict[str, tuple[dict[str, Any], float]] = {  # millions of parameters by the paper's formulas, V = 37,000
    "base": ({"preset": BASE}, 63.0),
    "A: 1 head": ({"preset": BASE, "attention": {"heads": 1}}, 63.0),
    "A: 4 heads": ({"preset": BASE, "attention": {"heads": 4}}, 63.0),
    "A: 16 heads": ({"preset": BASE, "attention": {"heads": 16}}, 63.0),
    "A: 32 heads": ({"preset": BASE, "attention": {"heads": 32}}, 63.0),
    "B: keys of 16": ({"preset": BASE, "attention": {"key_width": 16}}, 56.0),
    "B: keys of 32": ({"preset": BASE, "attention": {"key_width": 32}}, 58.3),
    "C: 2 layers": ({"preset": BASE, "encoder_layers": 2, "decoder_layers": 2}, 33.6),
    "C: 4 layers": ({"preset": BASE, "encoder_layers": 4, "decoder_layers": 4}, 48.3),
    "C: 8 layers": ({"preset": BASE, "encoder_layers": 8, "decoder_layers": 8}, 77.7),
    "C: width 256": ({"preset": BASE, "width": 256, "attention": {"key_width": 32, "value_width": 32}}, 26.8),
    "C: width 1024": ({"preset": BASE, "width": 1024, "attention": {"key_width": 128, "value_width": 128}}, 163.8),
    "C: feed-forward 1024": ({"preset": BASE, "feedforward": 1024}, 50.5),
    "C: feed-forward 4096": ({"preset": BASE, "feedforward": 4096}, 88.2),
    "big": ({"preset": "big-2017"}, 214.2),
}


def on_paper(config: TransformerConfig, size: int = 37_000) -> Transformer:
    """The model as shapes without storage."""
    with torch.device("meta"):
        return Transformer.from_config(config, size, size, PAD)


@pytest.mark.parametrize("row", TABLE_3)
def test_parameters_are_as_many_as_the_papers_formulas_say(row: str) -> None:
    values, millions = TABLE_3[row]
    config = TransformerConfig(**values)
    count = sum(parameter.numel() for parameter in on_paper(config).parameters())
    assert count == by_formula(config, 37_000)
    assert count / 1e6 == pytest.approx(millions, rel=1e-3, abs=0.05)  # the table rounds to 0.1


def by_formula(config: TransformerConfig, size: int) -> int:
    """Post-norm, all embeddings tied: counted by hand."""
    d, f, h = config.width, config.feedforward, config.attention.heads
    key, value = config.attention.key_width or d // h, config.attention.value_width or d // h
    attention, feedforward, norm = 2 * d * h * key + 2 * d * h * value, 2 * d * f + f + d, 2 * d
    encoder, decoder = attention + feedforward + 2 * norm, 2 * attention + feedforward + 3 * norm
    return size * d + config.encoder_layers * encoder + config.decoder_layers * decoder


def test_pre_norm_adds_one_norm_at_the_end_of_each_stack() -> None:
    post, pre = (on_paper(TransformerConfig(width=64, norm=norm)) for norm in ("post", "pre"))
    more = {name for name, _ in pre.named_parameters()} - {name for name, _ in post.named_parameters()}
    assert more == {f"{side}.norm.{part}" for side in ("encoder", "decoder") for part in ("weight", "bias")}


# An independent forward pass: the weights by name, plain operations, one sentence, one head after the other.


def norm(weights: dict[str, Tensor], place: str, x: Tensor) -> Tensor:
    centered = x - x.mean(-1, keepdim=True)
    deviation = (centered.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    return centered / deviation * weights[f"{place}.weight"] + weights[f"{place}.bias"]


def attention(weights: dict[str, Tensor], place: str, x: Tensor, memory: Tensor, causal: bool, heads: int) -> Tensor:
    q, k, v = (
        y @ weights[f"{place}.{part}.weight"].T for part, y in (("query", x), ("key", memory), ("value", memory))
    )
    mixed = []
    for q_, k_, v_ in zip(q.chunk(heads, 1), k.chunk(heads, 1), v.chunk(heads, 1), strict=True):
        scores = q_ @ k_.T / math.sqrt(q_.size(1))
        if causal:
            scores = scores + torch.full_like(scores, -torch.inf).triu(1)
        mixed.append(scores.exp() / scores.exp().sum(-1, keepdim=True) @ v_)
    return torch.cat(mixed, 1) @ weights[f"{place}.output.weight"].T


def feedforward(weights: dict[str, Tensor], place: str, x: Tensor) -> Tensor:
    inner = x @ weights[f"{place}.inner.weight"].T + weights[f"{place}.inner.bias"]
    return inner.clamp(min=0) @ weights[f"{place}.outer.weight"].T + weights[f"{place}.outer.bias"]


def reference(config: TransformerConfig, weights: dict[str, Tensor], source: list[int], target: list[int]) -> Tensor:
    """The logits of one pair by the paper's §3, for sinusoidal positions and ReLU."""
    heads = config.attention.heads

    def residual(place: str, x: Tensor, part: Any) -> Tensor:
        if config.norm == "post":
            return norm(weights, f"{place}_residual.norm", x + part(x))
        return x + part(norm(weights, f"{place}_residual.norm", x))

    def embed(side: str, ids: list[int]) -> Tensor:
        vectors = weights[f"{side}.embedding.weight"][ids] * math.sqrt(config.width)
        return vectors + codes(len(ids), config.width)

    def end(side: str, x: Tensor) -> Tensor:
        return norm(weights, f"{side}.norm", x) if config.norm == "pre" else x

    x = embed("encoder", source)
    for i in range(config.encoder_layers):
        at = f"encoder.layers.{i}"
        x = residual(f"{at}.attention", x, lambda y, at=at: attention(weights, f"{at}.attention", y, y, False, heads))
        x = residual(f"{at}.feedforward", x, lambda y, at=at: feedforward(weights, f"{at}.feedforward", y))
    memory, x = end("encoder", x), embed("decoder", target)
    for i in range(config.decoder_layers):
        at = f"decoder.layers.{i}"
        x = residual(f"{at}.attention", x, lambda y, at=at: attention(weights, f"{at}.attention", y, y, True, heads))
        x = residual(
            f"{at}.cross",
            x,
            lambda y, at=at: attention(weights, f"{at}.cross_attention", y, memory, False, heads),
        )
        x = residual(f"{at}.feedforward", x, lambda y, at=at: feedforward(weights, f"{at}.feedforward", y))
    return end("decoder", x) @ weights["output.weight"].T


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("tie", ["all", "target", "none"])
def test_logits_are_those_of_the_paper_written_out(norm: Any, tie: Any) -> None:
    config = TransformerConfig(
        width=16, feedforward=24, attention={"heads": 2}, norm=norm, tie_embeddings=tie, dropout=0.3
    )
    model, source, target = build(config), [7, 8, 9, EOS], [BOS, 5, 6, 7, 8]
    src_BS = torch.tensor([source])
    keep_BS = torch.ones_like(src_BS, dtype=torch.bool)
    got = model.decode(model.encode(src_BS, keep_BS), keep_BS, torch.tensor([target]))[0]
    weights = dict(model.named_parameters(remove_duplicate=False))
    assert_close(got, reference(config, weights, source, target), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("tie", "matrices"),
    [("all", {"output"}), ("target", {"output", "source"}), ("none", {"output", "source", "target"})],
)
def test_tied_weights_are_one_parameter(tie: Any, matrices: set[str]) -> None:
    source_size = 20 if tie == "all" else 30
    config = TransformerConfig(width=8, feedforward=8, attention={"heads": 2}, tie_embeddings=tie)
    model = Transformer.from_config(config, source_size, 20, PAD)
    assert (model.decoder.embedding.weight is model.output_weight_VD) == ("target" not in matrices)
    assert (model.encoder.embedding.weight is model.decoder.embedding.weight) == ("source" not in matrices)
    big = [name for name, weight in model.named_parameters() if weight.size(0) in (20, 30)]
    assert len(big) == len(matrices)
    assert model.encoder.embedding.weight.size(0) == source_size


def test_names_of_parameters_say_where_they_stand() -> None:
    names = [name for name, _ in on_paper(TransformerConfig(encoder_layers=1, decoder_layers=1)).named_parameters()]
    assert names[:7] == [
        "encoder.embedding.weight",
        "encoder.layers.0.attention.query.weight",
        "encoder.layers.0.attention.key.weight",
        "encoder.layers.0.attention.value.weight",
        "encoder.layers.0.attention.output.weight",
        "encoder.layers.0.attention_residual.norm.weight",
        "encoder.layers.0.attention_residual.norm.bias",
    ]
    assert "decoder.layers.0.cross_attention.query.weight" in names
    assert "decoder.layers.0.feedforward.inner.bias" in names


def test_weights_start_as_documented() -> None:
    config = TransformerConfig(width=64, feedforward=96, position={"kind": "learned", "length": 200})
    model = Transformer.from_config(config, 500, 500, PAD)
    model.initialize(torch.Generator().manual_seed(3))
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            bound = math.sqrt(6 / (module.in_features + module.out_features))
            assert 0.98 * bound < module.weight.abs().max() <= bound, name
            assert module.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05), name
            assert module.bias is None or not module.bias.any(), name
        elif isinstance(module, nn.LayerNorm):
            assert (module.weight == 1).all() and not module.bias.any() and module.eps == 1e-6, name
    embedding = model.encoder.embedding.weight
    assert not embedding[PAD].any()
    assert embedding[1:].std().item() == pytest.approx(64**-0.5, rel=0.05)
    assert model.encoder.position.weight.std().item() == pytest.approx(64**-0.5, rel=0.05)
    assert not torch.equal(model.encoder.position.weight, model.decoder.position.weight)


def test_padding_gets_no_gradient_from_inputs() -> None:
    model, batch = build(TransformerConfig(width=16, attention={"heads": 2}, tie_embeddings="none")), pairs(2, 2)
    model(batch.src_BS, batch.keep_BS, batch.tgt_BT).square().sum().backward()
    for side in (model.encoder, model.decoder):
        assert not side.embedding.weight.grad[PAD].any()


def test_the_2017_presets_drop_out_in_the_papers_two_places_only() -> None:
    for preset, p in ((BASE, 0.1), ("big-2017", 0.3)):
        model = on_paper(TransformerConfig(preset=preset), size=10)
        active = {name for name, module in model.named_modules() if isinstance(module, Dropout) and module.p > 0}
        assert {module.p for module in model.modules() if isinstance(module, Dropout)} == {0, p}
        assert {name.split(".")[-2] for name in active if "layers" in name} == {
            "attention_residual",
            "cross_residual",
            "feedforward_residual",
        }
        assert {name for name in active if "layers" not in name} == {"encoder.dropout", "decoder.dropout"}
        assert len(active) == 2 + 6 * 2 + 6 * 3


@pytest.mark.parametrize("place", ["dropout", "attention_dropout", "activation_dropout"])
def test_each_dropout_acts_while_training_only(place: str) -> None:
    none = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
    model, batch = build(TransformerConfig(width=16, attention={"heads": 2}, **{**none, place: 0.5})), pairs()
    memory = model.encode(batch.src_BS, batch.keep_BS)
    assert torch.equal(memory, model.encode(batch.src_BS, batch.keep_BS))
    torch.manual_seed(1)
    model.train()
    thinned = model.encode(batch.src_BS, batch.keep_BS)
    assert not torch.equal(memory, thinned)
    torch.manual_seed(1)
    assert torch.equal(thinned, model.encode(batch.src_BS, batch.keep_BS))


def test_without_dropout_training_and_translating_are_the_same_function() -> None:
    model, batch = build(TransformerConfig(width=16, attention={"heads": 2}, dropout=0.0)), pairs()
    memory = model.encode(batch.src_BS, batch.keep_BS)
    assert_close(memory[batch.keep_BS], model.train().encode(batch.src_BS, batch.keep_BS)[batch.keep_BS])


def test_gelu_is_another_function_than_relu() -> None:
    batch = pairs()
    relu, gelu = (
        build(TransformerConfig(width=16, attention={"heads": 2}, activation=kind)).encode(batch.src_BS, batch.keep_BS)
        for kind in ("relu", "gelu")
    )
    assert (relu - gelu).abs().max() > 1e-3


def test_a_model_learns_to_copy_one_batch() -> None:
    config = TransformerConfig(width=32, feedforward=64, encoder_layers=1, decoder_layers=1, attention={"heads": 2})
    model = Transformer.from_config(config, 23, 23, PAD).train()
    batch, optimizer = pairs(), torch.optim.Adam(model.parameters(), lr=5e-3)
    out_BT = torch.cat([batch.tgt_BT[:, 1:], torch.full((3, 1), PAD)], dim=1)
    torch.manual_seed(0)
    for _ in range(60):
        optimizer.zero_grad()
        logits_BTV = model.project(model(batch.src_BS, batch.keep_BS, batch.tgt_BT))
        loss = nn.functional.cross_entropy(logits_BTV.flatten(0, 1), out_BT.flatten(), ignore_index=PAD)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1
