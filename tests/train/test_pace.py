"""Updates are timed in parts, which are cut short where a whole one would take long."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from train.toys import CONFIG, PAD, SIZE, pairs

from nmt.batches.batch import Batch
from nmt.train.config import AdamConfig, MuonConfig, OptimizerConfig
from nmt.train.flops import batch_work
from nmt.train.pace import Stepping, cut, measure, within
from nmt.train.room import padded
from nmt.train.rules import Rules


def flops(batch: Batch) -> float:
    return batch_work(CONFIG, SIZE, batch, PAD).all


def batches() -> list[Batch]:
    data = pairs(60)
    return [data.load(rows) for update in data.updates(0) for rows in update]


@pytest.mark.parametrize("config", [AdamConfig(), MuonConfig()], ids=str)
def test_the_time_of_an_update_is_that_of_its_arithmetic_and_of_the_step(config: OptimizerConfig) -> None:
    model, known = CONFIG.build(SIZE, SIZE, PAD), batches()
    before = [parameter.clone() for parameter in model.parameters()]
    updates: Iterator[list[Batch]] = ([batch] for batch in known)
    pace = measure(model, config.build(model), updates, rules=Rules(), pad=PAD, flops=flops, seconds=0.0)
    assert pace.updates == 3 and pace.batch_tokens <= max(map(padded, known))
    assert 0 < pace.step_seconds < pace.seconds and pace.peak_bytes > 0
    assert pace.update_seconds(0.0) == pace.step_seconds
    once, twice = (pace.update_seconds(number * 1e6) - pace.step_seconds for number in (1, 2))
    assert twice == pytest.approx(2 * once)
    assert all(map(torch.equal, model.parameters(), before))


def test_within_takes_whole_batches_then_rows_and_at_least_one() -> None:
    known = batches()[:3]
    all_of_them = sum(map(flops, known))
    assert within(known, PAD, flops, all_of_them) == known
    assert within(known, PAD, flops, flops(known[0])) == known[:1]
    (part,) = within(known, PAD, flops, flops(known[0]) * 0.6)
    assert flops(part) <= flops(known[0]) * 0.6 and 1 <= len(part.src_BS) < len(known[0].src_BS)
    assert len(within(known, PAD, flops, 0.0)[0].src_BS) == 1
    assert cut(known[0], PAD, lambda _: True) is known[0]


def test_a_step_inside_a_step_is_part_of_it() -> None:
    model = CONFIG.build(SIZE, SIZE, PAD)
    AdamConfig().build(model)  # torch makes hooks for the class of the first optimizer that is made of it
    optimizer = MuonConfig().build(model)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    stepping = Stepping(optimizer, torch.device("cpu"))
    with stepping:
        optimizer.step()
    assert stepping.depth == 0 and stepping.seconds > 0
