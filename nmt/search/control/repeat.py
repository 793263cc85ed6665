"""Against loops: no n-gram twice, and a price on tokens that were written already.

R rows · V vocabulary · T tokens so far · 1 broadcast
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class NoRepeat:
    """No sequence of `sizes[sentence]` tokens occurs twice in a hypothesis; 0 allows it."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes

    def __call__(self, log_probs_RV: Tensor, ids_RT: Tensor, sentences: Sequence[int]) -> Tensor:
        """Rules out whatever would complete a sequence for the second time."""
        rows, tokens = [], []
        for row, (ids, sentence) in enumerate(zip(ids_RT.tolist(), sentences, strict=True)):
            seen = repeating(ids, self.sizes[sentence])
            rows += [row] * len(seen)
            tokens += seen
        if rows:
            log_probs_RV[rows, tokens] = -torch.inf
        return log_probs_RV


def repeating(ids: Sequence[int], size: int) -> list[int]:
    """The tokens after which the last `size` tokens of `ids` would have occurred before; `size` 0 finds none."""
    if not 0 < size <= len(ids):
        return []
    known = size - 1
    last = ids[len(ids) - known :]
    return sorted({ids[i + known] for i in range(len(ids) - known) if ids[i : i + known] == last})


class RepetitionPenalty:
    """Multiplies the log-probability of each token that a hypothesis has (Keskar et al. 2019, on log-probabilities)."""

    def __init__(self, factors: Sequence[float], device: torch.device) -> None:
        self.factor_B = torch.tensor(factors, device=device)

    def __call__(self, log_probs_RV: Tensor, ids_RT: Tensor, sentences: Sequence[int]) -> Tensor:
        """A factor above 1 makes written tokens less probable; the end mark is never among them."""
        factor_R1 = self.factor_B[list(sentences)][:, None]
        return log_probs_RV.scatter(1, ids_RT, log_probs_RV.gather(1, ids_RT) * factor_R1)
