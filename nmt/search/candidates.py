"""The best next tokens.

R rows · V vocabulary · S sentences · P hypotheses of each · M, N wanted · G groups · C tokens of a group
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from nmt.errors import ModelError
from nmt.model import compiling
from nmt.search import loops
from nmt.search.loops import GROUP

Numbers = np.ndarray[Any, Any]
Best = tuple[Tensor, Tensor, Tensor, Tensor]
"""total_SM, the log-probability of a hypothesis with a next token, best first and -inf where there is none; gain_SM,
that of the token alone; parent_SM, the hypothesis's place; and token_SM."""


class Predictions(Protocol):
    """What may come next in each row."""

    def continuations(self, live_SP: Tensor, count: int) -> Best:
        """The `count` best of all that each sentence's hypotheses, `live_SP` so far, may choose next."""

    def gains(self, token: int) -> Tensor:
        """The log-probability_R of one token."""

    def favourites(self) -> Tensor:
        """The most probable token_R."""


class Given:
    """Log-probabilities of all tokens, on any device."""

    def __init__(self, log_probs_RV: Tensor) -> None:
        self.log_probs_RV = log_probs_RV

    def continuations(self, live_SP: Tensor, count: int) -> Best:
        """As of Predictions."""
        best = best_continuations(self.log_probs_RV, live_SP, count)
        missing = count - best[0].size(1)
        if missing <= 0:
            return best
        return tuple(pad(x_SM, (0, missing), value=-torch.inf if i == 0 else 0) for i, x_SM in enumerate(best))  # type: ignore[return-value]

    def gains(self, token: int) -> Tensor:
        """As of Predictions."""
        return self.log_probs_RV[:, token]

    def favourites(self) -> Tensor:
        """As of Predictions."""
        return self.log_probs_RV.argmax(1)


class Passed:
    """Logits on a processor, whose softmax is never written down: one pass finds its sum, another one the best."""

    def __init__(self, logits_RV: Numbers, sum_R: Numbers, most_RG: Numbers, banned: Sequence[int]) -> None:
        self.logits_RV, self.sum_R, self.most_RG = logits_RV, sum_R, most_RG
        self.banned_V = _mask(logits_RV.shape[1], tuple(banned))

    @classmethod
    def of(cls, logits_RV: Tensor, banned: Sequence[int]) -> Passed:
        """Those that a model gives. Raises ModelError where they are no numbers."""
        logits = logits_RV.float().numpy()
        return cls(logits, *_sums(logits), banned)

    @classmethod
    def given(cls, log_probs_RV: Tensor) -> Passed:
        """Log-probabilities as they are: their sum is nothing."""
        log_probs = np.ascontiguousarray(log_probs_RV.numpy())
        _, most_RG = _room(log_probs)
        loops.greatest_of_groups(log_probs, most_RG)
        return cls(log_probs, np.zeros(len(log_probs), np.float32), most_RG, ())

    def continuations(self, live_SP: Tensor, count: int) -> Best:
        """As of Predictions."""
        total_SM, gain_SM = torch.empty(len(live_SP), count), torch.empty(len(live_SP), count)
        parent_SM, token_SM = (torch.empty(len(live_SP), count, dtype=torch.long) for _ in range(2))
        best = total_SM, gain_SM, parent_SM, token_SM
        passed = self.logits_RV, self.sum_R, self.most_RG, self.banned_V
        loops.continue_best(*passed, live_SP.numpy(), *(x_SM.numpy() for x_SM in best))
        return best

    def gains(self, token: int) -> Tensor:
        """As of Predictions."""
        return torch.from_numpy(self.logits_RV[:, token] - self.sum_R)

    def favourites(self) -> Tensor:
        """As of Predictions; of equal ones the last, as in `continuations`."""
        backwards_RV = np.where(self.banned_V, -np.inf, self.logits_RV)[:, ::-1]
        return torch.from_numpy(self.logits_RV.shape[1] - 1 - backwards_RV.argmax(1))


def _sums(logits_RV: Numbers) -> tuple[Numbers, Numbers]:
    """log Σ exp of each row, and the greatest logit of each group. Raises ModelError where they are no numbers."""
    sum_R, most_RG = _room(logits_RV)
    loops.log_sums(logits_RV, sum_R, most_RG)
    if not np.isfinite(sum_R).all():
        raise ModelError(
            "the model's predictions are not numbers: some of its weights are far too large, or not numbers themselves",
            "take an earlier checkpoint; train with a lower learning rate or train.clip_norm = 1.0",
        )
    return sum_R, most_RG


def _room(logits_RV: Numbers) -> tuple[Numbers, Numbers]:
    rows, size = logits_RV.shape
    return np.empty(rows, np.float32), np.empty((rows, -(-size // GROUP)), np.float32)


def _passes(logits_RV: Tensor) -> bool:
    """Whether compiled loops can pass over them."""
    return logits_RV.device.type == "cpu" and compiling.AVAILABLE


@lru_cache(8)
def _mask(size: int, banned: tuple[int, ...]) -> Numbers:
    mask_V = np.zeros(size, np.bool_)
    mask_V[list(banned)] = True
    return mask_V


def predictions(
    logits_RV: Tensor, banned: Sequence[int], adjust: Callable[[Tensor], Tensor] | None = None
) -> Predictions:
    """What may come next, `banned` tokens apart; `adjust` may change the log-probabilities before."""
    if not _passes(logits_RV):
        return Given(log_probabilities(logits_RV, banned, adjust))
    if adjust is None:
        return Passed.of(logits_RV, banned)
    return Passed.given(log_probabilities(logits_RV, banned, adjust))


def log_probabilities(
    logits_RV: Tensor, banned: Sequence[int], adjust: Callable[[Tensor], Tensor] | None = None
) -> Tensor:
    """The log-probabilities of all tokens, -inf for those that are `banned`, in float32.

    Banned tokens keep their share of the probability mass, so that a forced scorer, which bans nothing, agrees.
    `adjust` may change the log-probabilities after that.
    """
    if _passes(logits_RV):  # to the last digit what `Passed` finds
        sum_R, _ = _sums(logits_RV.float().numpy())
        log_probs_RV = logits_RV.float() - torch.from_numpy(sum_R)[:, None]
    else:
        log_probs_RV = logits_RV.log_softmax(-1, dtype=torch.float32)
    for token in banned:
        log_probs_RV[:, token] = -torch.inf
    return log_probs_RV if adjust is None else adjust(log_probs_RV)


def next_tokens(
    logits_RV: Tensor, count: int, banned: Sequence[int], adjust: Callable[[Tensor], Tensor] | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """`log_probabilities`, and each row's `count` best tokens of them, best first.

    Returns (log_probs_RV, best_RN, tokens_RN); best_RN holds -inf where fewer tokens are possible.
    """
    log_probs_RV = log_probabilities(logits_RV, banned, adjust)
    best_RN, tokens_RN = top(log_probs_RV, min(count, log_probs_RV.size(1)))
    return log_probs_RV, best_RN, tokens_RN


def best_continuations(log_probs_RV: Tensor, live_SP: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The `count` best of all that each sentence's hypotheses, `live_SP` so far, may choose next; fewer if there are.

    Returns total_SM, the log-probability with that so far, best first; gain_SM, that of the token alone; parent_SM, the
    hypothesis's place; and token_SM.
    """
    sentences, each = live_SP.shape
    size = log_probs_RV.size(1)
    groups, rest = divmod(size, GROUP)
    if rest or each * groups <= 2 * count:
        return _best_of_all(log_probs_RV, live_SP, count)
    grouped_RGC = log_probs_RV.view(-1, groups, GROUP)
    most_SG = (grouped_RGC.amax(-1).view(sentences, each, groups) + live_SP[:, :, None]).view(sentences, -1)
    group_SM = most_SG.topk(count).indices
    near_SMC = log_probs_RV.view(sentences, -1, GROUP).gather(1, group_SM[:, :, None].expand(-1, -1, GROUP))
    parent_SM = group_SM // groups
    total_SMC = near_SMC + live_SP.gather(1, parent_SM)[:, :, None]
    total_SM, place_SM = total_SMC.view(sentences, -1).topk(count)
    chosen_SM = place_SM // GROUP
    token_SM = (group_SM.gather(1, chosen_SM) % groups) * GROUP + place_SM % GROUP
    gain_SM = near_SMC.view(sentences, -1).gather(1, place_SM)
    return total_SM, gain_SM, parent_SM.gather(1, chosen_SM), token_SM


def _best_of_all(log_probs_RV: Tensor, live_SP: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The same for small vocabularies, or those that groups do not divide."""
    sentences, each = live_SP.shape
    best_RN, tokens_RN = top(log_probs_RV, min(count, log_probs_RV.size(1)))
    width = best_RN.size(1)
    total_SM = (live_SP[:, :, None] + best_RN.view(sentences, each, width)).view(sentences, -1)
    total_SM, place_SM = total_SM.topk(min(count, total_SM.size(1)))
    gain_SM, token_SM = (x.view(sentences, -1).gather(1, place_SM) for x in (best_RN, tokens_RN))
    return total_SM, gain_SM, place_SM // width, token_SM


def top(x_RV: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`x_RV.topk(count)`, up to the order of equals: values and indices, falling.

    Finds the best of each group of columns first, which vectorizes, and then looks into the `count` best groups
    only, outside of which none of the `count` best values can lie.
    """
    groups, rest = divmod(x_RV.size(1), GROUP)
    if groups <= 2 * count:
        values_RN, indices_RN = x_RV.topk(count)
        return values_RN, indices_RN
    grouped_RGC = x_RV[:, : groups * GROUP].unflatten(1, (groups, GROUP))
    chosen_RN = grouped_RGC.amax(-1).topk(count).indices
    near = grouped_RGC.gather(1, chosen_RN[:, :, None].expand(-1, -1, GROUP)).flatten(1)
    if rest:
        near = torch.cat([near, x_RV[:, -rest:]], 1)
    values_RN, places_RN = near.topk(count)
    group_RN = places_RN // GROUP
    column_RN = chosen_RN.gather(1, group_RN.clamp(max=count - 1)) * GROUP + places_RN % GROUP
    return values_RN, torch.where(group_RN < count, column_RN, places_RN + (groups - count) * GROUP)
