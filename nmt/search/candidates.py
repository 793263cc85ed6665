"""The best next tokens of every row.  R rows · V vocabulary · N wanted · G groups · C tokens of a group"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

_GROUP = 64


def next_tokens(
    logits_RV: Tensor, count: int, banned: Sequence[int], adjust: Callable[[Tensor], Tensor] | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The log-probabilities of all tokens, and the `count` best that are not `banned`, best first.

    Banned tokens keep their share of the probability mass, so that a forced scorer, which bans nothing, agrees.
    `adjust` may change the log-probabilities before the best are found. Returns
    (log_probs_RV, best_RN, tokens_RN); best_RN holds -inf where fewer tokens are possible.
    """
    log_probs_RV = logits_RV.log_softmax(-1, dtype=torch.float32)  # fused: cheaper than a logsumexp of its own
    for token in banned:
        log_probs_RV[:, token] = -torch.inf
    if adjust is not None:
        log_probs_RV = adjust(log_probs_RV)
    best_RN, tokens_RN = top(log_probs_RV, min(count, log_probs_RV.size(1)))
    return log_probs_RV, best_RN, tokens_RN


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
