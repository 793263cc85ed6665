"""The best next tokens.

R rows · V vocabulary · S sentences · P hypotheses of each · M, N wanted · G groups · C tokens of a group
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

_GROUP = 64


def log_probabilities(
    logits_RV: Tensor, banned: Sequence[int], adjust: Callable[[Tensor], Tensor] | None = None
) -> Tensor:
    """The log-probabilities of all tokens, -inf for those that are `banned`, in float32.

    Banned tokens keep their share of the probability mass, so that a forced scorer, which bans nothing, agrees.
    `adjust` may change the log-probabilities after that.
    """
    log_probs_RV = logits_RV.log_softmax(-1, dtype=torch.float32)  # fused: cheaper than a logsumexp of its own
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
    groups, rest = divmod(size, _GROUP)
    if rest or each * groups <= 2 * count:
        return _best_of_all(log_probs_RV, live_SP, count)
    grouped_RGC = log_probs_RV.view(-1, groups, _GROUP)
    most_SG = (grouped_RGC.amax(-1).view(sentences, each, groups) + live_SP[:, :, None]).view(sentences, -1)
    group_SM = most_SG.topk(count).indices
    near_SMC = log_probs_RV.view(sentences, -1, _GROUP).gather(1, group_SM[:, :, None].expand(-1, -1, _GROUP))
    parent_SM = group_SM // groups
    total_SMC = near_SMC + live_SP.gather(1, parent_SM)[:, :, None]
    total_SM, place_SM = total_SMC.view(sentences, -1).topk(count)
    chosen_SM = place_SM // _GROUP
    token_SM = (group_SM.gather(1, chosen_SM) % groups) * _GROUP + place_SM % _GROUP
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
    groups, rest = divmod(x_RV.size(1), _GROUP)
    if groups <= 2 * count:
        values_RN, indices_RN = x_RV.topk(count)
        return values_RN, indices_RN
    grouped_RGC = x_RV[:, : groups * _GROUP].unflatten(1, (groups, _GROUP))
    chosen_RN = grouped_RGC.amax(-1).topk(count).indices
    near = grouped_RGC.gather(1, chosen_RN[:, :, None].expand(-1, -1, _GROUP)).flatten(1)
    if rest:
        near = torch.cat([near, x_RV[:, -rest:]], 1)
    values_RN, places_RN = near.topk(count)
    group_RN = places_RN // _GROUP
    column_RN = chosen_RN.gather(1, group_RN.clamp(max=count - 1)) * _GROUP + places_RN % _GROUP
    return values_RN, torch.where(group_RN < count, column_RN, places_RN + (groups - count) * _GROUP)
