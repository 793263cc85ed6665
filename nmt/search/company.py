"""Which sentences may share a batch, so that none feels who shares it: a translation is a matter of its line alone."""

from __future__ import annotations

from collections.abc import Callable

import torch

from nmt.model.inference.captured import CapturedTransformer
from nmt.model.inference.compiled import CompiledTransformer
from nmt.model.inference.ensemble import CompiledEnsemble
from nmt.model.inference.frames import size
from nmt.model.inference.transformer import FastTransformer, places
from nmt.model.seq2seq import Stepper

ROWS = 64
"""Hypotheses that step together on a processor: products gain nothing by more, and caches stay small."""


def apart(stepper: Stepper) -> Callable[[int], int]:
    """The places of a source of so many tokens, where sources of others shall not share its batch."""
    if isinstance(stepper, CapturedTransformer):
        return size
    if isinstance(stepper, FastTransformer):
        return places
    return lambda length: 0


def alone(stepper: Stepper, device: torch.device) -> bool:
    """Whether each source needs a batch of its own: torch's products of other shapes may end in other digits.

    On a GPU that is so everywhere, and taken for its speed.
    """
    if device.type != "cpu" or isinstance(stepper, CompiledTransformer | CompiledEnsemble | CapturedTransformer):
        return False
    return not (isinstance(stepper, FastTransformer) and stepper.shares)


def widest(stepper: Stepper, device: torch.device, rows: int) -> int:
    """Most sentences of a batch on a processor, each of which has so many rows."""
    return 1 if alone(stepper, device) else max(ROWS // rows, 1)
