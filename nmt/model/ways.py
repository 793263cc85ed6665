"""The ways to compute whole sentences. All give the same numbers, but for rounding; tests hold them equal."""

from __future__ import annotations

from enum import Enum, auto


class Way(Enum):
    """How padding and the future are kept out."""

    PLAIN = auto()
    """Padding is computed, and a mask hides it. What translates does it like this."""
    PACKED = auto()
    """Without padding: see nmt.model.packing. The fastest way to train on a processor."""
    FUSED = auto()
    """Padding is computed, attention is one kernel, and the future is hidden by that kernel, not by a mask.

    For training on a GPU. Nothing in it waits for a number that only the device knows, as the number of real tokens,
    by which packing or a nested layout would begin every layer's kernels anew. Batches are of sentences of one length
    or nearly so, so there is little padding to save. Padding after a target lies in every real token's future and needs
    no mask: kernels without a bias can be used there. Padding after a source is hidden by numbers that are added, a row
    for each sentence: the memory-efficient kernel spreads it over heads and queries without a copy, where a boolean
    mask would be made numbers anew in every layer.
    """


def way(training: bool, device: str) -> Way:
    """The way that suits a kind of device: "cpu" or another one."""
    if not training:
        return Way.PLAIN
    return Way.PACKED if device == "cpu" else Way.FUSED
