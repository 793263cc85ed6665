"""The form for GPUs against the model it was made from. What a GPU captures, a processor runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from model.cases import BOS, MODELS, TARGET_SIZE, build, name, pairs
from model.recorded import Recorded
from torch import Tensor
from torch.testing import assert_close

from nmt.errors import SettingsError
from nmt.model.config import TransformerConfig
from nmt.model.inference.build import Engine, form_of
from nmt.model.inference.captured import CapturedTransformer
from nmt.model.inference.frames import size
from nmt.model.seq2seq import Seq2Seq

every_model = pytest.mark.parametrize("config", MODELS, ids=name)
_close: Any = {"atol": 1e-4, "rtol": 1e-4}


def formed(config: Any = MODELS[0], rows: int = 12) -> tuple[Seq2Seq, CapturedTransformer]:
    """The model in float32 and its form, of few slots, whose steps are recorded and replayed as on a GPU."""
    model: Any = build(config).float()
    assert CapturedTransformer.fits(model)
    form = CapturedTransformer(model, "float32", rows)
    form.graphs = Recorded()
    return model, form


@every_model
@torch.inference_mode()
def test_memories_are_the_models(config: Any) -> None:
    (model, form), batch = formed(config), pairs()
    memory = form.encode(batch.src_BS, batch.keep_BS)[:, : batch.keep_BS.size(1)]
    expected = model.encode(batch.src_BS, batch.keep_BS)
    assert_close(memory[batch.keep_BS], expected[batch.keep_BS], **_close)


@every_model
@torch.inference_mode()
def test_steps_are_those_without_a_cache_whatever_is_reordered_and_whoever_leaves(config: Any) -> None:
    (model, form), batch = formed(config), pairs()
    generator = torch.Generator().manual_seed(3)
    memory, keep = model.encode(batch.src_BS, batch.keep_BS), batch.keep_BS
    state: Any = form.start(memory, keep)
    tgt_RT, beams = torch.full((3, 1), BOS), 1
    for t in range(20):  # past the fewest steps that are set aside
        logits_RV, state = form.step(state, tgt_RT[:, -1])
        every = torch.arange(len(memory)).repeat_interleave(beams)
        assert_close(logits_RV, model.decode(memory[every], keep[every], tgt_RT)[:, -1], **_close)
        if t in (4, 17):  # the last one fills a hole; later one sentence is left
            index_S = torch.tensor([2, 1] if t == 4 else [1])
            state, memory, keep = state.select(index_S), memory[index_S], keep[index_S]
            tgt_RT = tgt_RT.unflatten(0, (-1, beams))[index_S].flatten(0, 1)
        parents_SN = torch.randint(beams, (len(memory), 3), generator=generator)
        parents_R = (torch.arange(len(memory))[:, None] * beams + parents_SN).flatten()
        state, beams = replace(state.reorder(parents_R), beams=3), 3
        last_R1 = torch.randint(4, TARGET_SIZE, (len(parents_R), 1), generator=generator)
        tgt_RT = torch.cat([tgt_RT[parents_R], last_R1], 1)
    assert form.graphs.count == 3  # type: ignore[attr-defined]  # one hypothesis; three; three and more than 16 steps


@torch.inference_mode()
def test_sentences_may_be_selected_twice_in_any_order_and_again() -> None:
    (model, form), batch = formed(rows=6), pairs()
    memory = model.encode(batch.src_BS, batch.keep_BS)
    state, expected = form.start(memory, batch.keep_BS, beams=2), model.start(memory, batch.keep_BS, beams=2)
    for last_R in torch.tensor([[BOS] * 6, [5, 6, 7, 8, 9, 10]]):
        _, state = form.step(state, last_R)
        _, expected = model.step(expected, last_R)
    for index in ([2, 0, 2, 1], [3, 2, 1]):
        state, expected = state.select(torch.tensor(index)), expected.select(torch.tensor(index))
    for last_R in torch.arange(4, 16).view(2, 6):
        logits_RV, state = form.step(state, last_R)
        expected_RV, expected = model.step(expected, last_R)
        assert_close(logits_RV, expected_RV, **_close)


@pytest.mark.parametrize("arithmetic", ["float32", "bfloat16", "float16"])
@torch.inference_mode()
def test_a_sentence_is_computed_alike_to_the_last_digit_whatever_the_batch(arithmetic: str) -> None:
    model: Any = build(MODELS[0]).float()
    form, generator = CapturedTransformer(model, arithmetic, rows=120), torch.Generator().manual_seed(6)
    src_BS = torch.randint(4, TARGET_SIZE, (40, 32), generator=generator)
    keep_BS = torch.arange(32) < torch.randint(17, 33, (40, 1), generator=generator)
    last_TR = torch.randint(4, TARGET_SIZE, (3 if arithmetic == "float16" else 18, 120), generator=generator)

    def logits(some: slice, length: int) -> Tensor:
        src, keep = src_BS[some, :length], keep_BS[some, :length]
        state: Any = form.start(form.encode(src, keep), keep, beams=3)
        for last_R in last_TR[:, 3 * some.start : 3 * some.stop]:
            logits_RV, state = form.step(state, last_R)
        return logits_RV

    together = logits(slice(0, 40), 32)
    for start, stop in ((0, 1), (7, 9), (3, 20), (39, 40)):
        longest = int(keep_BS[start:stop].sum(1).max())
        assert torch.equal(logits(slice(start, stop), longest), together[3 * start : 3 * stop])


@pytest.mark.parametrize(("arithmetic", "most"), [("bfloat16", 0.1), ("float16", 0.02)])
@torch.inference_mode()
def test_fewer_bits_stay_close(arithmetic: str, most: float) -> None:
    config = TransformerConfig.model_validate(
        {"width": 32, "feedforward": 64, "attention": {"heads": 2}, "norm": "post"}
    )
    model, batch = config.build(TARGET_SIZE, TARGET_SIZE, 0).eval(), pairs()
    form = CapturedTransformer(model, arithmetic, rows=4)  # type: ignore[arg-type]
    state: Any = form.start(form.encode(batch.src_BS, batch.keep_BS), batch.keep_BS)
    for last_R in batch.tgt_BT.T[:2]:
        logits_RV, state = form.step(state, last_R)
    expected = model.decode(model.encode(batch.src_BS, batch.keep_BS), batch.keep_BS, batch.tgt_BT[:, :2])[:, -1]
    assert (logits_RV.float() - expected).abs().max() < most * expected.abs().max()


@torch.inference_mode()
def test_nothing_of_an_earlier_search_is_left() -> None:
    (_, form), batch = formed(), pairs()
    expected = form.step(form.start(form.encode(batch.src_BS, batch.keep_BS), batch.keep_BS), torch.tensor([BOS] * 3))
    form.past.cache_N2SHTPE.fill_(torch.nan)
    state = form.start(form.encode(batch.src_BS, batch.keep_BS), batch.keep_BS)
    assert torch.equal(form.step(state, torch.tensor([BOS] * 3))[0], expected[0])


@torch.inference_mode()
def test_a_search_that_another_one_has_ended_is_refused() -> None:
    (_, form), batch = formed(), pairs()
    memory = form.encode(batch.src_BS, batch.keep_BS)
    old, new = form.start(memory, batch.keep_BS), form.start(memory, batch.keep_BS)
    form.step(new, torch.tensor([BOS] * 3))
    with pytest.raises(RuntimeError, match="another search has begun"):
        form.step(old, torch.tensor([BOS] * 3))


def test_a_gpu_gets_the_captured_form_of_models_that_no_longer_learn() -> None:
    model, cuda = formed()[0], torch.device("cuda")
    assert form_of(model, cuda, learning=False) is CapturedTransformer
    assert form_of(model, cuda, learning=True) is None
    with pytest.raises(SettingsError, match="'float16' is for GPUs only"):
        Engine(model, torch.device("cpu"))("float16")


def test_few_sizes_serve_all_lengths() -> None:
    assert [size(length) for length in (1, 16, 17, 32, 33, 1000)] == [16, 16, 32, 32, 64, 1024]


@torch.inference_mode()
def test_what_cannot_be_captured_simply_runs_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    class Unable(Recorded):
        def _capture(self, work: Any) -> Any:
            work()
            raise RuntimeError("operation not permitted")

    (_, form), batch = formed(), pairs()
    last_TR, found = torch.randint(4, TARGET_SIZE, (4, 3), generator=torch.Generator().manual_seed(4)), []
    for graphs in (Recorded(), Unable()):
        form.graphs, form.made = graphs, {}
        state: Any = form.start(form.encode(batch.src_BS, batch.keep_BS), batch.keep_BS)
        for last_R in last_TR:
            logits_RV, state = form.step(state, last_R)
        found.append(logits_RV)
    assert torch.equal(*found) and not graphs.captures
    assert [record.getMessage() for record in caplog.records] == [
        "steps are not captured on cpu, which makes them slower: operation not permitted"
    ]


@pytest.mark.gpu
@pytest.mark.parametrize("arithmetic", ["float32", "bfloat16", "float16"])
@torch.inference_mode()
def test_a_gpu_captures_what_a_processor_runs(arithmetic: str) -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    config = TransformerConfig.model_validate({"width": 64, "attention": {"heads": 2}})
    model, batch = config.build(TARGET_SIZE, TARGET_SIZE, 0).eval(), pairs()
    found = []
    for device in ("cpu", "cuda"):
        form = CapturedTransformer(model.to(device), arithmetic, rows=12)  # type: ignore[arg-type]
        src, keep = batch.src_BS.to(device), batch.keep_BS.to(device)
        state: Any = form.start(form.encode(src, keep), keep, beams=2)
        for t in range(20):
            logits_RV, state = form.step(state, torch.arange(t, t + 6, device=device) % TARGET_SIZE)
        found.append(logits_RV.float().cpu())
    most = {"float32": 1e-4, "bfloat16": 0.2, "float16": 0.02}[arithmetic]
    assert (found[0] - found[1]).abs().max() < most * found[0].abs().max()
