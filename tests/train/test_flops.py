"""Arithmetic is counted as torch counts it, but for a future that nobody reads; the paper's formula gives its table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from nmt.batches.batch import collate
from nmt.model.config import PRESETS, DotConfig, TransformerConfig
from nmt.model.ways import Way
from nmt.train.flops import PUBLISHED, batch_work, paper_flops, training_work
from nmt.train.loss import smoothed_loss

SIZE, PAD, ROWS, SOURCE, TARGET = 23, 0, 3, 7, 5


class Counter(TorchDispatchMode):
    """What torch.utils.flop_counter says of every operation, without the second that its own mode takes to begin."""

    total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if count := flop_registry.get(func._overloadpacket):
            self.total += count(*args, **(kwargs or {}), out_val=out)
        return out


@pytest.mark.parametrize("attention", [DotConfig(heads=2), DotConfig(heads=3, key_width=4, value_width=6)], ids=str)
def test_work_is_what_torch_counts_without_the_future_in_the_decoders_self_attention(attention: DotConfig) -> None:
    config = TransformerConfig(
        width=16, feedforward=24, encoder_layers=2, decoder_layers=3, dropout=0.0, attention=attention
    )
    model = config.build(SIZE, SIZE, PAD).train()
    model.trains = Way.PLAIN
    ids = [np.arange(4, 4 + length - 1) for length in (SOURCE, TARGET)]
    batch = collate([ids[0]] * ROWS, [ids[1]] * ROWS, bos=2, eos=3, pad=PAD)
    with Counter() as counter:
        logits_BTV = model.decode(model.encode(batch.src_BS, batch.keep_BS), batch.keep_BS, batch.tgt_BT)
        smoothed_loss(logits_BTV.flatten(0, 1), batch.out_BT.flatten(), 0.1, PAD).backward()
    across = attention.heads * ((attention.key_width or 8) + (attention.value_width or 8))
    future = 6 * config.decoder_layers * ROWS * TARGET**2 * across / 2
    assert batch_work(config, SIZE, batch, PAD).all == counter.total - future


def test_work_is_a_sum_over_pairs_and_its_parts() -> None:
    config, random = TransformerConfig(), np.random.default_rng(1)
    source, target = random.integers(2, 90, (2, 50))
    parts = [training_work(config, 100, source[i : i + 1], target[i : i + 1]) for i in range(50)]
    whole = training_work(config, 100, source, target)
    assert whole.all == pytest.approx(sum(part.all for part in parts))
    assert whole.all == whole.encoder + whole.decoder + whole.output
    assert whole.times(3).all == pytest.approx(3 * whole.all)
    assert whole.times(2, layers=0.5).all == pytest.approx(whole.all + whole.output)


def test_the_papers_formula_gives_the_training_costs_of_its_table() -> None:
    assert {name: f"{paper.flops:.1e}" for name, paper in PUBLISHED.items()} == {
        "base-2017": "3.3e+18",
        "big-2017": "2.3e+19",
    }
    assert set(PUBLISHED) <= set(PRESETS)
    assert paper_flops(2.0, 4, 10.0) == 8 * paper_flops(1.0, 1, 10.0) == 8 * 3600 * 1e13


@pytest.mark.parametrize("preset", sorted(PUBLISHED))
def test_the_papers_gpus_did_a_third_of_what_they_could(preset: str) -> None:
    """Its updates had 25,000 tokens on either side, in sentences of about 27."""
    paper, tokens = PUBLISHED[preset], np.full(25_000 // 27, 27)
    work = training_work(TransformerConfig(preset=preset), 37_000, tokens, tokens).all * paper.steps
    assert 0.25 < work / paper.flops < 0.45
