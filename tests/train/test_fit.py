"""What an update is, and what the loop does when."""

from __future__ import annotations

import resource
from pathlib import Path

import numpy as np
import pytest
import torch
from held import held
from torch.testing import assert_close
from train.toys import PAD, SCHEDULE, model, optimizer, pairs, steps_of, store

from nmt.batches.batch import Batch
from nmt.checkpoint.layout import BEST, LAST, pointed, read_validation, step_name
from nmt.checkpoint.tensors import weights
from nmt.errors import OutputError, TrainingError
from nmt.model.seq2seq import Seq2Seq
from nmt.train.events import Saved, Skipped, Step, Stopped, Validation
from nmt.train.fit import fit, learn
from nmt.train.optimizer import moments, sgd
from nmt.train.rules import Rules
from nmt.train.state import State
from nmt.train.validate import Scores


def scripted(values: list[float]):
    """A validation that gives these BLEU values one after another."""
    rest = iter(values)
    return lambda: Scores(loss=1.0, perplexity=2.7, bleu=next(rest))


def run(folder: Path | None, rules: Rules, *, keep: int = 5, trained: Seq2Seq | None = None, **given) -> list[object]:
    trained = trained or model()
    kept = store(folder, keep, rules.save_every) if folder else None
    torch.manual_seed(1)
    return list(
        fit(
            trained,
            given.pop("learner", None) or optimizer(trained),
            given.pop("data", None) or pairs(),
            given.pop("state", None) or State(),
            schedule=SCHEDULE,
            rules=rules,
            store=kept,
            **given,
        )
    )


def copies(of: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in of.items()}


# --- one update ---


def test_an_updates_loss_is_all_loss_over_all_tokens() -> None:
    batches = [pairs().load(rows) for rows in (np.arange(3), np.arange(3, 10), np.array([10]))]
    still = model(dropout=0.0).double()
    outcome = learn(still, sgd(still), batches, rate=0.0, rules=Rules(), pad=PAD)
    singles = [learn(still, sgd(still), [batch], rate=0.0, rules=Rules(), pad=PAD) for batch in batches]
    total = sum(single.loss * single.tokens for single in singles)
    assert outcome.loss == pytest.approx(total / outcome.tokens, rel=1e-9)


class Fixed(Seq2Seq):
    """Gives every token of a batch the loss that is asked for: two tokens in the vocabulary, one logit moves."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([[0.0], [1.0]], dtype=torch.float64))
        self.gain = torch.nn.Parameter(torch.ones((), dtype=torch.float64))

    output_weight_VD = property(lambda self: self.weight)  # type: ignore[assignment]

    def encode(self, src_BS, keep_BS):
        return src_BS

    def decode_states(self, memory, keep_BS, tgt_BT):
        return self.gain * memory[:, :1, None].expand(*tgt_BT.shape, 1)

    def start(self, memory, keep_BS, beams=1): ...

    def step(self, state, last_R): ...

    def initialize(self, generator): ...


def batch_of(loss: float, tokens: int) -> Batch:
    """`tokens` labels, each with this loss: log(1 + exp(x)) for the token whose logit is 0 beside one with logit x."""
    logit = float(np.log(np.expm1(loss)))
    ids = torch.zeros(tokens, 1, dtype=torch.int64)
    return Batch(torch.full((tokens, 1), logit, dtype=torch.float64), ids == 0, ids, ids, tokens)


def test_three_tokens_of_loss_six_and_one_of_eight_make_three_and_a_half() -> None:
    plain = Rules(label_smoothing=0.0)
    halves, whole = Fixed(), Fixed()
    first, second = batch_of(2.0, 3), batch_of(8.0, 1)
    both = Batch(
        torch.cat((first.src_BS, second.src_BS)), torch.ones(4, 1, dtype=torch.bool), *[torch.zeros(4, 1).long()] * 2, 4
    )
    split = learn(halves, sgd(halves), [first, second], rate=0.1, rules=plain, pad=9)
    joint = learn(whole, sgd(whole), [both], rate=0.1, rules=plain, pad=9)
    assert split.loss == pytest.approx(3.5) and joint.loss == pytest.approx(3.5)
    assert_close(weights(halves), weights(whole), atol=1e-12, rtol=0)


@pytest.mark.parametrize("cuts", [1, 2, 5])
def test_accumulated_batches_update_as_one_batch_does(cuts: int) -> None:
    data = pairs(20, batch_tokens=1000)
    whole, parts = model(dropout=0.0).double(), model(dropout=0.0).double()
    learn(whole, sgd(whole), [data.load(np.arange(20))], rate=0.5, rules=Rules(), pad=PAD)
    learn(
        parts, sgd(parts), [data.load(r) for r in np.array_split(np.arange(20), cuts)], rate=0.5, rules=Rules(), pad=PAD
    )
    assert_close(weights(parts), weights(whole), atol=1e-9, rtol=0)


def test_a_long_gradient_is_scaled_to_the_clip_norm_and_a_short_one_is_not() -> None:
    def moved(clip: float | None) -> float:
        one = model(dropout=0.0).double()
        before = copies(weights(one))
        learn(one, sgd(one), [pairs().load(np.arange(9))], rate=1.0, rules=Rules(clip_norm=clip), pad=PAD)
        after = weights(one)
        return float(torch.stack([(after[name] - before[name]).pow(2).sum() for name in after]).sum().sqrt())

    free = moved(None)
    assert moved(free / 2) == pytest.approx(free / 2, rel=1e-4)
    assert moved(free * 2) == pytest.approx(free)


def test_update_n_uses_the_nth_rate() -> None:
    events = run(None, Rules(steps=6))
    assert [e.learning_rate for e in events if isinstance(e, Step)] == [SCHEDULE(n) for n in range(1, 7)]


def test_tied_weights_stay_tied_while_they_learn() -> None:
    trained = model()
    run(None, Rules(steps=3), trained=trained)
    assert trained.output_weight_VD is trained.encoder.embedding.weight is trained.decoder.embedding.weight
    assert len(weights(trained)) == len(dict(trained.named_parameters()))


def test_training_in_bfloat16_learns_and_keeps_float32_weights() -> None:
    trained = model()
    events = run(None, Rules(steps=5, precision="bfloat16"), trained=trained)
    exact = run(None, Rules(steps=5))
    assert {p.dtype for p in trained.parameters()} == {torch.float32}
    for rough, fine in zip(events[:-1], exact[:-1], strict=True):
        assert rough.loss == pytest.approx(fine.loss, rel=0.05)


# --- updates that are not finite ---


def poison(trained: Seq2Seq, at: set[int]) -> None:
    """Let the states of the forward passes numbered in `at`, from 0, be infinite."""
    calls = iter(range(10_000))

    def forward(src_BS, keep_BS, tgt_BT):
        x_BTD = type(trained).forward(trained, src_BS, keep_BS, tgt_BT)
        return x_BTD * float("inf") if next(calls) in at else x_BTD

    trained.forward = forward


def test_an_update_that_is_not_finite_changes_nothing_but_a_counter() -> None:
    trained = model()
    learner, state = optimizer(trained), State()
    poison(trained, {3})
    seen = []
    before: dict[str, torch.Tensor] = {}
    for event in fit(trained, learner, pairs(), state, schedule=SCHEDULE, rules=Rules(steps=6)):
        seen.append(event)
        now = copies({**weights(trained), **moments(learner, trained)})
        if isinstance(event, Skipped):
            assert_close(now, before, atol=0, rtol=0)
        before = now
    assert [type(event) for event in seen] == [Step, Step, Step, Skipped, Step, Step, Stopped]
    assert (state.step, state.skipped, state.skipped_in_a_row) == (6, 1, 0)
    rates = [event.learning_rate for event in seen if isinstance(event, Step)]
    assert rates == [SCHEDULE(n) for n in range(1, 6)]
    skipped = seen[3]
    assert skipped.step == 4 and skipped.rows == tuple(int(i) for rows in pairs().updates(0)[3] for i in rows)


def test_too_many_bad_updates_in_a_row_end_training_and_keep_the_last_good_checkpoint(tmp_path: Path) -> None:
    trained = model()
    poison(trained, set(range(5, 99)))
    with pytest.raises(TrainingError, match="3 updates in a row, up to step 8") as problem:
        run(tmp_path, Rules(steps=60, save_every=2, max_bad_steps=3), trained=trained)
    assert "learning rate" in problem.value.hint
    assert steps_of(tmp_path)[-1] == 6
    for path in tmp_path.glob("step-*"):
        restored = model()
        store(tmp_path).restore(path, restored, optimizer(restored))
        assert all(bool(torch.isfinite(w).all()) for w in weights(restored).values())


def test_bad_updates_between_good_ones_are_borne(tmp_path: Path) -> None:
    trained = model()
    poison(trained, {1, 2, 4, 5, 7, 8})
    events = run(tmp_path, Rules(steps=10, max_bad_steps=3), trained=trained)
    assert sum(isinstance(event, Skipped) for event in events) == 6


def test_a_weight_that_is_not_finite_is_never_saved(tmp_path: Path) -> None:
    trained = model()
    with torch.no_grad():
        trained.output_weight_VD[5, 5] = torch.nan
    with pytest.raises(TrainingError, match="not finite"):
        store(tmp_path).save(trained, optimizer(trained), State(step=1))
    assert steps_of(tmp_path) == []


def test_a_full_disk_ends_training_and_leaves_the_older_checkpoints(tmp_path: Path) -> None:
    run(tmp_path, Rules(steps=2, save_every=1))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9000, hard))
    try:
        with pytest.raises(OutputError, match="cannot be written"):
            run(tmp_path, Rules(steps=3, save_every=3))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


# --- when what is due ---


@pytest.mark.parametrize(("steps", "expected"), [(20, [5, 10, 15, 20]), (23, [5, 10, 15, 20, 23]), (3, [3])])
def test_every_nth_and_the_last_update_are_saved(steps: int, expected: list[int], tmp_path: Path) -> None:
    events = run(tmp_path, Rules(steps=steps, save_every=5))
    assert steps_of(tmp_path) == expected == [event.step for event in events if isinstance(event, Saved)]
    assert pointed(tmp_path, LAST) == tmp_path / step_name(steps)


def test_the_last_update_is_validated_though_none_was_due(tmp_path: Path) -> None:
    events = run(tmp_path, Rules(steps=3), evaluate=scripted([7.0]))
    assert [event.step for event in events if isinstance(event, Validation)] == [3]
    assert read_validation(tmp_path / step_name(3))["bleu"] == 7.0


def test_the_newest_and_the_best_checkpoints_are_kept(tmp_path: Path) -> None:
    rules = Rules(steps=12, save_every=2, validate_every=2)
    run(tmp_path, rules, keep=2, evaluate=scripted([1, 9, 2, 3, 4, 5]))
    assert steps_of(tmp_path) == [4, 10, 12]
    assert pointed(tmp_path, BEST) == tmp_path / step_name(4)


def test_a_best_model_between_two_saves_is_saved(tmp_path: Path) -> None:
    rules = Rules(steps=10, save_every=5, validate_every=3)
    run(tmp_path, rules, evaluate=scripted([1, 3, 2, 0]))
    assert steps_of(tmp_path) == [5, 6, 10]
    assert pointed(tmp_path, BEST) == tmp_path / step_name(6)


@pytest.mark.parametrize(("patience", "validations", "best"), [(1, 3, 2), (2, 6, 4), (3, 6, 4)])
def test_patience_counts_validations_without_a_strictly_better_value(
    patience: int, validations: int, best: int, tmp_path: Path
) -> None:
    rules = Rules(steps=12, save_every=2, validate_every=2, patience=patience)
    events = run(tmp_path, rules, evaluate=scripted([10, 11, 11, 11.5, 11.4, 11.5]))
    assert [event.step for event in events if isinstance(event, Validation)][-1] == 2 * validations
    assert pointed(tmp_path, BEST) == tmp_path / step_name(2 * best)
    assert ("no better bleu" in events[-1].reason) == (patience == 1)


@pytest.mark.parametrize(("patience", "stopped_after"), [(1, 3), (2, 6), (3, None)])
def test_patience_survives_a_restart_after_every_validation(patience, stopped_after) -> None:
    rules = Rules(steps=10**9, patience=patience)
    state, over = State(), None
    for number, value in enumerate([10, 11, 11, 11.5, 11.4, 11.5], 1):
        state = State.read(state.plain())
        state.step += 1
        state.judge(value, lower_is_better=False)
        if over is None and rules.over(state):
            over = number
    assert over == stopped_after


def test_a_lower_loss_is_better_and_nan_never_wins() -> None:
    state = State()
    won = []
    for value in [float("nan"), 3.0, float("nan"), 3.0, 2.5, float("-inf"), float("inf")]:
        state.step += 1
        won.append(state.judge(value, lower_is_better=True))
    assert won == [False, True, False, False, True, False, False]
    assert (state.best, state.best_step, state.bad_validations) == (2.5, 5, 2)


def test_epochs_end_training_exactly_there() -> None:
    events = run(None, Rules(epochs=2))
    steps = [event for event in events if isinstance(event, Step)]
    assert len(steps) == len(pairs().updates(0)) + len(pairs().updates(1))
    assert {event.epoch for event in steps} == {1, 2}


def test_minutes_count_over_all_restarts(tmp_path: Path) -> None:
    seconds = iter(range(0, 10_000, 10))
    state = State()
    run(tmp_path, Rules(minutes=5), state=state, clock=lambda: float(next(seconds)))
    assert 300 <= state.elapsed < 340
    first = state.step
    seconds = iter(range(0, 10_000, 10))
    run(tmp_path, Rules(minutes=10), state=state, clock=lambda: float(next(seconds)))
    assert 600 <= state.elapsed < 640 and first < state.step <= 2 * first + 1


def test_nothing_is_held_of_epochs_that_are_over() -> None:
    trained, seen, updates = model(), {}, 0
    for event in fit(trained, optimizer(trained), pairs(), State(), schedule=SCHEDULE, rules=Rules(epochs=8)):
        if isinstance(event, Step) and event.epoch in {2, 8} - set(seen):
            seen[event.epoch] = held()
        updates += isinstance(event, Step)
    assert seen[8][0] == seen[2][0]
    assert seen[8][1] - seen[2][1] < 0.5 * updates, "not one object an update"


def test_nothing_to_train_on_is_an_error() -> None:
    with pytest.raises(TrainingError, match="no training pair is left"):
        run(None, Rules(steps=1), data=pairs(max_target_tokens=1))


@pytest.mark.parametrize("state", [State(step=90, update=80), State(step=9, update=2, group=1, before=2)])
def test_a_state_beyond_the_updates_there_are_is_an_error(state: State) -> None:
    with pytest.raises(TrainingError, match=f"the state of step {state.step} is damaged") as problem:
        run(None, Rules(steps=99), state=state)
    assert f"step-{state.step:08d}" in problem.value.hint


def test_validation_leaves_model_and_random_numbers_alone() -> None:
    def losses(rules: Rules, evaluate) -> list[float]:
        return [event.loss for event in run(None, rules, evaluate=evaluate) if isinstance(event, Step)]

    assert losses(Rules(steps=8), None) == losses(Rules(steps=8, validate_every=2), scripted([1, 2, 3, 4]))
