"""Sequences of tokens that must not occur.  R rows · V vocabulary · T tokens so far"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class Forbidden:
    """None of the sequences `phrases[sentence]` occurs in a hypothesis."""

    def __init__(self, phrases: Sequence[Sequence[Sequence[int]]]) -> None:
        self.phrases = phrases

    def __call__(self, log_probs_RV: Tensor, ids_RT: Tensor, sentences: Sequence[int]) -> Tensor:
        """Rules out the last token of a sequence after the others."""
        rows, tokens = [], []
        for row, (ids, sentence) in enumerate(zip(ids_RT.tolist(), sentences, strict=True)):
            for *before, last in self.phrases[sentence]:
                if len(before) <= len(ids) and ids[len(ids) - len(before) :] == before:
                    rows.append(row)
                    tokens.append(last)
        if rows:
            log_probs_RV[rows, tokens] = -torch.inf
        return log_probs_RV
