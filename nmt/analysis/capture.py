"""The weights of attention as the model uses them, recorded without changing what it computes.

L layers · B batch · H heads · Q queries · K keys · S source · T target · E width of a head
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from nmt.batches.batch import Batch
from nmt.errors import ModelError
from nmt.model.attention.core import Attention
from nmt.model.layers import DecoderLayer, EncoderLayer
from nmt.model.seq2seq import Seq2Seq

Kind = Literal["encoder", "decoder", "cross"]
KINDS: tuple[Kind, ...] = ("encoder", "decoder", "cross")
Mix = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]


@dataclass(frozen=True)
class Place:
    """Where attention stands in a model."""

    kind: Kind
    """Encoder self-, decoder self- or cross-attention."""
    layer: int
    """From 0."""
    module: Attention


def places(model: Seq2Seq) -> list[Place]:
    """Every attention of the model, layer by layer, the encoder's first. Raises ModelError where there is none."""
    encoders = [layer for layer in model.modules() if isinstance(layer, EncoderLayer)]
    decoders = [layer for layer in model.modules() if isinstance(layer, DecoderLayer)]
    found = [Place("encoder", i, layer.attention) for i, layer in enumerate(encoders)]
    for i, layer in enumerate(decoders):
        found += [Place("decoder", i, layer.attention), Place("cross", i, layer.cross_attention)]
    if not found:
        raise ModelError(f"a {type(model).__name__} has no attention to look at", "take a model of another kind")
    return found


@contextmanager
def swapped(where: Sequence[Place], make: Callable[[Place, Mix], Mix]) -> Iterator[None]:
    """Each place's `mix` replaced by what `make` gives for the place and its old `mix`; put back after the block."""
    before = [place.module.__dict__.get("mix") for place in where]
    try:
        for place in where:
            place.module.__dict__["mix"] = make(place, place.module.mix)
        yield
    finally:
        for place, old in zip(where, before, strict=True):
            place.module.__dict__.pop("mix", None)
            if old is not None:
                place.module.__dict__["mix"] = old


@contextmanager
def recording(model: Seq2Seq) -> Iterator[dict[tuple[Kind, int], list[Tensor]]]:
    """While the block runs, the weights_BHQK of every call by (kind, layer). What the model gives stays the same.

    The recording `mix` asks the module's own `weights`, notes them, and leaves the mixing to the module's own `mix`.
    """
    notes: dict[tuple[Kind, int], list[Tensor]] = {}

    def make(place: Place, mix: Mix) -> Mix:
        kept = notes.setdefault((place.kind, place.layer), [])

        def record(q_BHQE: Tensor, k_BHKE: Tensor, v_BHKE: Tensor, bias_BHQK: Tensor | None) -> Tensor:
            kept.append(place.module.weights(q_BHQE, k_BHKE, bias_BHQK).detach())
            return mix(q_BHQE, k_BHKE, v_BHKE, bias_BHQK)

        return record

    with swapped(places(model), make):
        yield notes


def capture(model: Seq2Seq, batch: Batch) -> dict[Kind, Tensor]:
    """All weights for pairs whose target is known: for each kind a tensor LBHQK, on the model's device.

    Rows of decoder and cross are the steps of writing: row t has read `tgt_BT[:, t]` and writes `out_BT[:, t]`.
    The model computes as when it translates, without dropout and gradients, and is left as it was.
    """
    training = model.training
    model.eval()
    try:
        with torch.inference_mode(), recording(model) as notes:
            model(batch.src_BS, batch.keep_BS, batch.tgt_BT)
    finally:
        model.train(training)
    return {kind: torch.stack([kept[0] for (name, _), kept in notes.items() if name == kind]) for kind in KINDS}
