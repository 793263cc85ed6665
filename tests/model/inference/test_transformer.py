"""Both inference forms against the model they were made from."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from model.cases import BOS, MODELS, TARGET_SIZE, build, name, pairs
from torch.testing import assert_close

from nmt.model.config import DotConfig, TransformerConfig
from nmt.model.inference.build import Engine
from nmt.model.inference.compiled import CompiledTransformer
from nmt.model.inference.transformer import FastTransformer
from nmt.model.seq2seq import Seq2Seq

CPU = torch.device("cpu")
every_model = pytest.mark.parametrize("config", MODELS, ids=name)
every_form = pytest.mark.parametrize("form", [FastTransformer, CompiledTransformer])


def known(config: Any, form: Any = FastTransformer) -> Seq2Seq:
    """The model in float32, which the inference forms compute in; skipped where there is no such form."""
    model = build(config).float()
    if not form.fits(model):
        pytest.skip("translated by another form, or the model itself")
    return model


@every_model
def test_the_usual_models_have_an_inference_form(config: Any) -> None:
    if getattr(config.attention, "kind", "") == "dot":
        assert FastTransformer.fits(build(config))


@every_model
def test_models_with_positions_in_the_embedding_and_relu_have_a_compiled_form(config: Any) -> None:
    model = build(config)
    plain = getattr(config.attention, "kind", "") == "dot" and config.position.kind in ("sinusoidal", "learned", "none")
    assert CompiledTransformer.fits(model) == (plain and config.activation == "relu")


@every_form
@every_model
def test_a_model_that_learns_may_let_go_of_its_weights_afterwards(config: Any, form: Any) -> None:
    model = known(config, form)
    model.decoder.embedding.weight.requires_grad_(False)
    form(model, "float32")
    assert all(weight.untyped_storage().resizable() for weight in model.parameters())


@every_form
@every_model
def test_memories_are_the_models(config: Any, form: Any) -> None:
    model, batch = known(config, form), pairs()
    memory = form(model, "float32").encode(batch.src_BS, batch.keep_BS)
    expected = model.encode(batch.src_BS, batch.keep_BS)
    memory = memory[:, : batch.keep_BS.size(1)]
    assert_close(memory[batch.keep_BS], expected[batch.keep_BS], atol=1e-4, rtol=1e-4)


@every_form
@pytest.mark.parametrize("arithmetic", ["float32", "bfloat16", "int8"])
@torch.inference_mode()
def test_a_sentence_is_computed_alike_to_the_last_digit_whatever_the_batch(arithmetic: Any, form: Any) -> None:
    if form is CompiledTransformer and not form.fits(known(MODELS[0]), arithmetic):
        pytest.skip("this processor has no instructions for it")
    fast, generator = form(known(MODELS[0]), arithmetic), torch.Generator().manual_seed(6)
    shortest = 1 if form is CompiledTransformer else 17  # the other needs sources of equally many places
    src_BS = torch.randint(4, TARGET_SIZE, (40, 24), generator=generator)
    keep_BS = torch.arange(24) < torch.randint(shortest, 25, (40, 1), generator=generator)
    last_TR = torch.randint(4, TARGET_SIZE, (5, 120), generator=generator)

    def logits(some: slice, length: int) -> torch.Tensor:
        src, keep = src_BS[some, :length], keep_BS[some, :length]
        state = fast.start(fast.encode(src, keep), keep, beams=3)
        for last_R in last_TR[:, 3 * some.start : 3 * some.stop]:
            logits_RV, state = fast.step(state, last_R)
        return logits_RV.clone()  # the next step may use them up

    together = logits(slice(0, 40), 24)
    for start, stop in ((0, 1), (7, 9), (3, 20), (39, 40)):
        longest = int(keep_BS[start:stop].sum(1).max())
        assert torch.equal(logits(slice(start, stop), longest), together[3 * start : 3 * stop])


@every_form
@every_model
@torch.inference_mode()
def test_steps_are_the_models_whatever_is_reordered_and_whoever_leaves(config: Any, form: Any) -> None:
    model, batch = known(config, form), pairs()
    fast, generator = form(model, "float32"), torch.Generator().manual_seed(3)
    memory = model.encode(batch.src_BS, batch.keep_BS)
    state, expected_state = fast.start(memory, batch.keep_BS), model.start(memory, batch.keep_BS)
    last_R, beams = torch.full((3,), BOS), 1
    for t in range(12):
        logits_RV, state = fast.step(state, last_R)
        expected_RV, expected_state = model.step(expected_state, last_R)
        assert_close(logits_RV, expected_RV, atol=1e-4, rtol=1e-4)
        if t in (4, 7):  # the last one fills a hole; later one sentence is left
            index_S = torch.tensor([2, 1] if t == 4 else [1])
            state, expected_state = state.select(index_S), expected_state.select(index_S)
        sentences, wide = {4: 2, 5: 2, 6: 2}.get(t, 3 if t < 4 else 1), 3
        parents_SN = torch.randint(beams, (sentences, wide), generator=generator)
        parents_R = (torch.arange(sentences)[:, None] * beams + parents_SN).flatten()
        state = replace(state.reorder(parents_R), beams=wide)
        expected_state = replace(expected_state.reorder(parents_R), beams=wide)
        last_R, beams = torch.randint(4, TARGET_SIZE, (sentences * wide,), generator=generator), wide


@every_form
@torch.inference_mode()
def test_sentences_may_be_selected_twice_and_in_any_order(form: Any) -> None:
    model, batch = known(MODELS[0]), pairs()
    fast = form(model, "float32")
    memory, index_S = model.encode(batch.src_BS, batch.keep_BS), torch.tensor([2, 0, 2, 1])
    state, expected = fast.start(memory, batch.keep_BS, beams=2), model.start(memory, batch.keep_BS, beams=2)
    for last_R in torch.tensor([[BOS] * 6, [5, 6, 7, 8, 9, 10]]):
        _, state = fast.step(state, last_R)
        _, expected = model.step(expected, last_R)
    last_R = torch.arange(4, 12)
    logits_RV, _ = fast.step(state.select(index_S), last_R)
    assert_close(logits_RV, model.step(expected.select(index_S), last_R)[0], atol=1e-4, rtol=1e-4)


@every_form
def test_many_sources_are_encoded_like_few(form: Any) -> None:
    model = known(MODELS[0])
    src_BS = torch.randint(4, TARGET_SIZE, (80, 20), generator=torch.Generator().manual_seed(5))
    keep_BS = torch.ones_like(src_BS, dtype=torch.bool)
    memory = form(model, "float32").encode(src_BS, keep_BS)[:, :20]
    assert_close(memory, model.encode(src_BS, keep_BS), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("fused", [False, True])
def test_an_engine_follows_its_model_through_training(fused: bool) -> None:
    model, batch = known(MODELS[0]), pairs()
    engine, optimizer = Engine(model, CPU), torch.optim.Adam(model.parameters(), lr=0.1, fused=fused)
    engine("float32")
    model(batch.src_BS, batch.keep_BS, batch.tgt_BT).sum().backward()
    optimizer.step()
    memory = engine("float32").encode(batch.src_BS, batch.keep_BS)[:, : batch.keep_BS.size(1)]
    assert_close(memory[batch.keep_BS], model.encode(batch.src_BS, batch.keep_BS)[batch.keep_BS], atol=1e-4, rtol=1e-4)


def test_an_engine_is_made_once_of_weights_that_stay() -> None:
    model = known(MODELS[0]).requires_grad_(False)
    engine = Engine(model, CPU)
    first = engine("float32")
    assert engine("float32") is first
    assert engine("int8") is not first
    next(model.parameters()).mul_(2)
    assert engine("float32") is not first


def test_a_model_of_another_kind_translates_itself() -> None:
    config = TransformerConfig.model_validate({"width": 16, "attention": {"heads": 2, "key_width": 4}})
    model = config.build(TARGET_SIZE, TARGET_SIZE, 0)
    assert not FastTransformer.fits(model)
    assert Engine(model, CPU)("float32") is model
    assert Engine(model, CPU)("int8") is model
    assert Engine(model, CPU)("bfloat16") is model


@pytest.mark.parametrize("change", [{"width": 18}, {"feedforward": 22}, {"attention": DotConfig(heads=2, key_width=4)}])
def test_sizes_that_the_loops_do_not_know_have_no_compiled_form(change: dict[str, Any]) -> None:
    model = TransformerConfig(**{"width": 16, "feedforward": 24, "attention": DotConfig(heads=2), **change}).build(
        9, 9, 0
    )
    assert not CompiledTransformer.fits(model)


def test_threads_that_step_at_the_same_time_find_the_same_places(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = CompiledTransformer(known(MODELS[0]), "float32")  # type: ignore[arg-type]
    expected = [fast.decoder_side.position.embed(torch.zeros(1, 1, 16), step).flatten() for step in range(30)]
    embed, meeting = fast.decoder_side.position.embed, threading.Barrier(2)

    def slow(x_BTD: torch.Tensor, start: int) -> torch.Tensor:
        with suppress(threading.BrokenBarrierError):  # both are in it at once, or one alone
            meeting.wait(0.05)
        return embed(x_BTD, start)

    monkeypatch.setattr(fast.decoder_side.position, "embed", slow)
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda _: [fast._place(step) for step in range(30)], range(2)):
            assert torch.equal(torch.from_numpy(np.stack(found)), torch.stack(expected))


def test_threads_may_ask_one_engine_for_different_precisions() -> None:
    model = known(MODELS[0]).requires_grad_(False)
    engine = Engine(model, CPU)

    def kinds(precision: str) -> set[str]:
        return {str(engine(precision).decoder.project.weight_NPKW.dtype) for _ in range(20)}  # type: ignore[attr-defined]

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(kinds, ["float32", "int8"] * 4))
    assert all(len(one) == 1 for one in found)
    assert found[::2] == [{"float32"}] * 4
