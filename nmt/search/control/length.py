"""Limits of length: how long a translation must be, and how long it may be, in tokens without the end mark."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from fractions import Fraction

import torch
from torch import Tensor

from nmt.search.control.config import ControlConfig


def bounds(source_tokens: int, settings: ControlConfig) -> tuple[int, int]:
    """The least and the most tokens of a translation.

    A minimum beats `max_extra_tokens`; where a minimum and a maximum cannot both be met for this source, the maximum
    holds, and the least returned is more than the most.
    """
    least = max(settings.min_length, math.ceil(_times(source_tokens, settings.min_length_ratio)))
    return least, min(max(source_tokens + settings.max_extra_tokens, least), maximum(source_tokens, settings))


def maximum(source_tokens: int, settings: ControlConfig) -> int:
    """The most tokens that are asked for, which nothing else that is asked for goes beyond."""
    most = sys.maxsize if settings.max_length is None else settings.max_length
    if settings.max_length_ratio is not None:
        most = min(most, max(math.floor(_times(source_tokens, settings.max_length_ratio)), 1))
    return most


def _times(tokens: int, ratio: float) -> Fraction:
    """Exactly: 10 × 1.1 is 11, not a little more."""
    return tokens * Fraction(repr(ratio))


class MinLength:
    """No end mark before a hypothesis has `least[sentence]` tokens."""

    def __init__(self, least: Sequence[int], eos: int) -> None:
        self.least, self.eos = least, eos

    def __call__(self, log_probs_RV: Tensor, ids_RT: Tensor, sentences: Sequence[int]) -> Tensor:
        """Rules out the end mark in rows that are too short for it."""
        short = [row for row, sentence in enumerate(sentences) if ids_RT.size(1) < self.least[sentence]]
        if short:
            log_probs_RV[short, self.eos] = -torch.inf
        return log_probs_RV
