"""Constraints: functions that change what may come next, given what was written.

R rows, one a hypothesis · V vocabulary · T tokens so far

A constraint gets the log-probabilities of all tokens in every row, what each row has written, and whose hypothesis it
is; it returns new ones, none above 0. A token with -inf is never chosen. What is possible keeps its share of the
probability mass, so scores stay those of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Constraint = Callable[[Tensor, Tensor, Sequence[int]], Tensor]
"""(log_probs_RV, ids_RT, sentences of the rows) → log_probs_RV, which may be the same tensor changed."""


class Constraints:
    """All constraints of one batch, and the beginnings that its sentences must have.

    `prefixes` holds the forced first tokens of every sentence; within them no constraint counts. A row in which
    nothing is possible may end, and only that: so nobody's translation is lost.
    """

    def __init__(self, constraints: Sequence[Constraint], prefixes: Sequence[Sequence[int]], eos: int) -> None:
        self.constraints, self.prefixes, self.eos = constraints, prefixes, eos

    def __call__(self, log_probs_RV: Tensor, ids_RT: Tensor, sentences: Sequence[int]) -> Tensor:
        """The log-probabilities that search shall see."""
        end_R = log_probs_RV[:, self.eos].clamp(min=-1e9)
        rows, tokens = self._forced(ids_RT.size(1), sentences)
        forced = log_probs_RV[rows, tokens].clamp(min=-1e9)  # also where search never chooses them by itself
        for constraint in self.constraints:
            log_probs_RV = constraint(log_probs_RV, ids_RT, sentences)
        stuck_R = log_probs_RV.amax(1) == -torch.inf
        log_probs_RV[:, self.eos] = torch.where(stuck_R, end_R, log_probs_RV[:, self.eos])
        if rows:
            log_probs_RV[rows] = -torch.inf
            log_probs_RV[rows, tokens] = forced
        return log_probs_RV

    def _forced(self, length: int, sentences: Sequence[int]) -> tuple[list[int], list[int]]:
        """The rows that are still within their prefix, and the token each must take."""
        rows = [row for row, sentence in enumerate(sentences) if length < len(self.prefixes[sentence])]
        return rows, [self.prefixes[sentences[row]][length] for row in rows]
