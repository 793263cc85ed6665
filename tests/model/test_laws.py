"""What holds for every model that a recipe can name."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from model.cases import BOS, MODELS, PAD, SIZES, SOURCE_SIZE, TARGET_SIZE, build, name, pairs
from torch.testing import assert_close

from nmt.model.dropout import Dropout
from nmt.model.seq2seq import State

every_model = pytest.mark.parametrize("config", MODELS, ids=name)


@every_model
def test_stepping_equals_teacher_forcing(config: Any) -> None:
    model, batch = build(config), pairs()
    memory = model.encode(batch.src_BS, batch.keep_BS)
    logits_BTV, state = model.decode(memory, batch.keep_BS, batch.tgt_BT), model.start(memory, batch.keep_BS)
    for t in range(batch.tgt_BT.size(1)):
        logits_BV, state = model.step(state, batch.tgt_BT[:, t])
        assert_close(logits_BV, logits_BTV[:, t])


@every_model
def test_hypotheses_of_a_sentence_share_its_memory_and_follow_their_own_past(config: Any) -> None:
    model, batch, beams, steps = build(config), pairs(), 3, 5
    generator = torch.Generator().manual_seed(4)
    memory = model.encode(batch.src_BS, batch.keep_BS)
    state = model.start(memory, batch.keep_BS, beams)
    written_RT = torch.full((3 * beams, 1), BOS)
    for _ in range(steps):
        logits_RV, state = model.step(state, written_RT[:, -1])
        assert_close(logits_RV, _last_logits(model, memory, batch.keep_BS, written_RT, beams))
        parents_R = (torch.arange(3)[:, None] * beams + torch.randint(beams, (3, beams), generator=generator)).flatten()
        state = state.reorder(parents_R)
        next_R = torch.randint(4, TARGET_SIZE, (3 * beams,), generator=generator)
        written_RT = torch.cat([written_RT[parents_R], next_R[:, None]], dim=1)


@every_model
def test_selected_sentences_go_on_as_if_the_others_had_never_been(config: Any) -> None:
    model, batch, beams = build(config), pairs(), 2
    memory = model.encode(batch.src_BS, batch.keep_BS)
    written_RT = torch.tensor([[BOS, 5], [BOS, 6], [BOS, 7], [BOS, 8], [BOS, 9], [BOS, 10]])
    state = model.start(memory, batch.keep_BS, beams)
    for t in range(2):
        _, state = model.step(state, written_RT[:, t])
    index_B, rows_R = torch.tensor([2, 0, 2]), torch.tensor([4, 5, 0, 1, 4, 5])
    logits_RV, _ = model.step(state.select(index_B), torch.full((6,), 11))
    written_RT = torch.cat([written_RT[rows_R], torch.full((6, 1), 11)], dim=1)
    assert_close(logits_RV, _last_logits(model, memory[index_B], batch.keep_BS[index_B], written_RT, beams))


@every_model
def test_a_step_leaves_the_state_before_it_as_it_was(config: Any) -> None:
    model, batch = build(config), pairs()
    _, state = model.step(model.start(model.encode(batch.src_BS, batch.keep_BS), batch.keep_BS), torch.full((3,), BOS))
    first, after = model.step(state, torch.tensor([5, 6, 7]))
    model.step(after, torch.tensor([8, 9, 10]))
    model.step(state, torch.tensor([9, 9, 9]))
    again, _ = model.step(state, torch.tensor([5, 6, 7]))
    assert torch.equal(first, again)


@every_model
def test_padding_changes_nothing(config: Any) -> None:
    model, batch, wide = build(config), pairs(), pairs(extra_source=5, extra_target=4)
    length = batch.tgt_BT.size(1)
    narrow = model.decode(model.encode(batch.src_BS, batch.keep_BS), batch.keep_BS, batch.tgt_BT)
    assert_close(
        model.decode(model.encode(wide.src_BS, wide.keep_BS), wide.keep_BS, wide.tgt_BT)[:, :length],
        narrow,
        rtol=1e-10,
        atol=1e-10,
    )


@every_model
def test_what_stands_under_padding_is_never_read(config: Any) -> None:
    model, batch = build(config), pairs(extra_source=2)
    other_BS = torch.where(batch.keep_BS, batch.src_BS, 17)
    expected = model.decode(model.encode(batch.src_BS, batch.keep_BS), batch.keep_BS, batch.tgt_BT)
    assert torch.equal(model.decode(model.encode(other_BS, batch.keep_BS), batch.keep_BS, batch.tgt_BT), expected)


@every_model
def test_a_sentence_alone_is_a_sentence_in_a_batch(config: Any) -> None:
    model, batch = build(config), pairs()
    together = model.decode(model.encode(batch.src_BS, batch.keep_BS), batch.keep_BS, batch.tgt_BT)
    for row in range(3):
        src_1S = batch.src_BS[row][batch.keep_BS[row]][None]
        tgt_1T = batch.tgt_BT[row][batch.tgt_BT[row] != PAD][None]
        keep_1S = torch.ones_like(src_1S, dtype=torch.bool)
        alone = model.decode(model.encode(src_1S, keep_1S), keep_1S, tgt_1T)[0]
        assert_close(alone, together[row, : tgt_1T.size(1)], rtol=1e-10, atol=1e-10)


@every_model
def test_the_future_is_unseen(config: Any) -> None:
    model, batch = build(config), pairs()
    memory = model.encode(batch.src_BS, batch.keep_BS)
    logits_BTV = model.decode(memory, batch.keep_BS, batch.tgt_BT)
    for t in range(1, batch.tgt_BT.size(1)):
        other_BT = batch.tgt_BT.clone()
        other_BT[:, t:] = 19
        changed_BTV = model.decode(memory, batch.keep_BS, other_BT)
        assert torch.equal(changed_BTV[:, :t], logits_BTV[:, :t])
        assert not torch.equal(changed_BTV[:, t], logits_BTV[:, t])


@every_model
def test_the_order_of_words_matters_on_both_sides(config: Any) -> None:
    model = build(config)
    keep_BS = torch.ones(1, 3, dtype=torch.bool)

    def last(source: list[int], target: list[int]) -> torch.Tensor:
        return model.decode(model.encode(torch.tensor([source]), keep_BS), keep_BS, torch.tensor([target]))[0, -1]

    plain = last([7, 8, 9], [BOS, 5, 6, 4])
    assert (last([8, 7, 9], [BOS, 5, 6, 4]) - plain).abs().max() > 1e-4
    assert (last([7, 8, 9], [BOS, 6, 5, 4]) - plain).abs().max() > 1e-4


@every_model
def test_every_parameter_learns(config: Any) -> None:
    model, batch = build(config).train(), pairs()
    logits_BTV = model.project(model(batch.src_BS, batch.keep_BS, batch.tgt_BT))
    logits_BTV.log_softmax(-1)[..., 4].sum().backward()
    dead = [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert dead == []


@every_model
def test_logits_are_states_times_the_output_matrix(config: Any) -> None:
    model, batch = build(config), pairs()
    memory = model.encode(batch.src_BS, batch.keep_BS)
    x_BTD = model.decode_states(memory, batch.keep_BS, batch.tgt_BT)
    assert torch.equal(x_BTD, model(batch.src_BS, batch.keep_BS, batch.tgt_BT))
    assert model.output_weight_VD.shape == (TARGET_SIZE, x_BTD.size(-1))
    expected = torch.einsum("btd,vd->btv", x_BTD, model.output_weight_VD)
    assert_close(model.decode(memory, batch.keep_BS, batch.tgt_BT), expected)


@every_model
def test_weights_are_a_function_of_the_seed_only(config: Any) -> None:
    before = torch.get_rng_state()
    one, two, three = (config.build(SOURCE_SIZE, TARGET_SIZE, PAD) for _ in range(3))
    for model, seed in ((one, 5), (two, 5), (three, 6)):
        model.initialize(torch.Generator().manual_seed(seed))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(one.parameters(), three.parameters(), strict=True))


@every_model
def test_a_new_model_is_already_initialized(config: Any) -> None:
    one, two = config.build(SOURCE_SIZE, TARGET_SIZE, PAD), config.build(SOURCE_SIZE, TARGET_SIZE, PAD)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


@every_model
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_trains_and_steps_with_finite_numbers(config: Any, dtype: torch.dtype) -> None:
    model, batch = build(config).float(), pairs()
    exact = model.decode(model.encode(batch.src_BS, batch.keep_BS), batch.keep_BS, batch.tgt_BT)
    with torch.autocast("cpu", dtype):
        memory = model.encode(batch.src_BS, batch.keep_BS)
        logits_BTV = model.decode(memory, batch.keep_BS, batch.tgt_BT)
        state = model.start(memory, batch.keep_BS, beams=2)
        for token in (BOS, 5):
            logits_RV, state = model.step(state, torch.full((6,), token))
        with torch.inference_mode():
            model.decode(memory, batch.keep_BS, batch.tgt_BT)
    logits_BTV.float().logsumexp(-1).sum().backward()
    assert (logits_BTV - exact).abs().max() < 0.2 * exact.std() + 0.2
    assert logits_RV.isfinite().all()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())


@every_model
def test_a_whole_model_in_bfloat16_works(config: Any) -> None:
    model, batch = build(config).bfloat16(), pairs()
    memory = model.encode(batch.src_BS, batch.keep_BS)
    assert memory.dtype == torch.bfloat16
    logits_RV, _ = model.step(model.start(memory, batch.keep_BS, 2), torch.full((6,), BOS))
    assert model.decode(memory, batch.keep_BS, batch.tgt_BT).isfinite().all()
    assert logits_RV.isfinite().all()


@every_model
def test_a_source_without_a_single_real_token_gives_finite_numbers(config: Any) -> None:
    model, batch = build(config).train(), pairs()
    keep_BS = batch.keep_BS.clone()
    keep_BS[1] = False
    logits_BTV = model.decode(model.encode(batch.src_BS, keep_BS), keep_BS, batch.tgt_BT)
    logits_BTV.logsumexp(-1).sum().backward()
    assert logits_BTV.isfinite().all()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())


@every_model
def test_translating_long_sentences_does_not_spoil_training(config: Any) -> None:
    model = config.build(SOURCE_SIZE, TARGET_SIZE, PAD)
    length = min(config.max_length() or 600, 600)  # past the tables a position encoding starts with
    src_BS = torch.full((1, length), 7)
    with torch.inference_mode():
        model.encode(src_BS, src_BS > 0)
    model(src_BS, src_BS > 0, src_BS).sum().backward()


def test_reordering_moves_hypotheses_only() -> None:
    state = State(sentences=(torch.tensor([1, 2]),), rows=(torch.tensor([10, 11, 20, 21]),), beams=2, step=3)
    after = state.reorder(torch.tensor([1, 1, 2, 3]))
    assert (after.sentences[0].tolist(), after.rows[0].tolist(), after.step) == ([1, 2], [11, 11, 20, 21], 3)


def test_selecting_moves_sentences_with_their_hypotheses() -> None:
    state = State(sentences=(torch.tensor([1, 2]),), rows=(torch.tensor([10, 11, 20, 21]),), beams=2, step=3)
    after = state.select(torch.tensor([1, 1, 0]))
    assert after.sentences[0].tolist() == [2, 2, 1]
    assert after.rows[0].tolist() == [20, 21, 20, 21, 10, 11]


def _last_logits(
    model: Any, memory: torch.Tensor, keep_BS: torch.Tensor, written_RT: torch.Tensor, beams: int
) -> torch.Tensor:
    """Teacher forcing with the memory copied for every hypothesis: what sharing it must equal."""
    wide = memory.repeat_interleave(beams, dim=0), keep_BS.repeat_interleave(beams, dim=0)
    return model.decode(*wide, written_RT)[:, -1]


@every_model
def test_training_without_the_padding_is_the_same_function_of_the_real_tokens(config: Any) -> None:
    model, batch = build(config), pairs(extra_source=3, extra_target=1)
    for part in model.modules():
        if isinstance(part, Dropout):
            part.p = 0.0
    targets_BT = batch.tgt_BT != PAD
    weights_BTD = torch.randn(*batch.tgt_BT.shape, SIZES["width"], generator=torch.Generator().manual_seed(5)).double()

    def states_and_gradients() -> list[torch.Tensor]:
        model.zero_grad()
        memory = model.encode(batch.src_BS, batch.keep_BS)
        x_BTD = model.decode_states(memory, batch.keep_BS, batch.tgt_BT)
        (x_BTD * weights_BTD)[targets_BT].sum().backward()
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        return [memory[batch.keep_BS].detach(), x_BTD[targets_BT].detach(), *gradients]

    padded = states_and_gradients()
    model.train()
    assert_close(states_and_gradients(), padded)
