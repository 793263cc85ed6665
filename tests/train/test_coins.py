"""Coins for layers: seeded, fair to their chance, and the same for every part of an update."""

from __future__ import annotations

import pytest
from train.toys import model

from nmt.model.layer_drop import layers_left_out
from nmt.train.coins import toss


def tossed(seed: int, step: int, chance: float = 0.3) -> list[bool]:
    layers = list(layers_left_out(model(layer_drop=chance, encoder_layers=3, decoder_layers=3)))
    toss(layers, seed, step)
    return [layer.left_out for layer in layers]


def test_coins_are_a_function_of_seed_step_and_place() -> None:
    assert tossed(1, 5) == tossed(1, 5)
    assert len({tuple(tossed(1, step)) for step in range(30)}) > 5
    assert [tossed(1, step) for step in range(20)] != [tossed(2, step) for step in range(20)]


@pytest.mark.parametrize("chance", [0.1, 0.5])
def test_each_layer_is_left_out_of_its_share_of_the_updates(chance: float) -> None:
    layers = list(layers_left_out(model(layer_drop=chance, encoder_layers=2, decoder_layers=1)))
    counts = [0] * len(layers)
    for step in range(1000):
        toss(layers, 7, step)
        counts = [count + layer.left_out for count, layer in zip(counts, layers, strict=True)]
    assert all(abs(count / 1000 - chance) < 0.05 for count in counts)
