"""Which layers an update leaves out: a coin for every layer and update, whoever computes which part of it."""

from __future__ import annotations

from collections.abc import Sequence

from nmt.model.layer_drop import MayBeLeftOut
from nmt.train.seeds import derive


def toss(layers: Sequence[MayBeLeftOut], seed: int, step: int) -> None:
    """Leave out of the update after `step` the layers whose coins say so: a function of seed, step and place only.

    All batches of an update, and all processes, leave out the same ones: the update is then one of a smaller model,
    however it is cut.
    """
    for place, layer in enumerate(layers):
        layer.left_out = derive(seed, f"layer {place} {step}") < layer.chance * 2**63
