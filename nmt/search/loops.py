"""The best next tokens, found by one compiled pass over the logits.

R rows · V vocabulary · G groups of tokens · S sentences · P hypotheses of each · M wanted
"""

from __future__ import annotations

import numpy as np

from nmt.model.inference.compiling import compiled
from nmt.model.inference.loops import greatest, power_of_e

GROUP = 64  # tokens that are passed over together, where none of them can be among the best
_f = np.float32


@compiled
def log_sums(logits_RV, sum_R, most_RG):
    """log Σ exp of each row, and the greatest logit of each group of tokens."""
    rows, size = logits_RV.shape
    for r in range(rows):
        x_V = logits_RV[r]
        highest = _f(-np.inf)
        for g in range(most_RG.shape[1]):
            most = greatest(x_V, g * GROUP, min((g + 1) * GROUP, size))
            most_RG[r, g] = most
            highest = max(highest, most)
        sum_ = _f(0.0)
        for v in range(size):
            sum_ += power_of_e(x_V[v] - highest)
        sum_R[r] = highest + np.log(sum_)


@compiled
def continue_best(logits_RV, sum_R, most_RG, banned_V, live_SP, total_SM, gain_SM, parent_SM, token_SM):
    """The M best continuations of each sentence's hypotheses, best first; -inf where there is none.

    A total is the sum of `live_SP` and the token's log-probability, its gain. Of equal ones the first hypothesis's come
    first, and of these the later tokens: the marks, end mark included, have the first numbers, and a model that is so
    sure of one token that all others are equally impossible shall not have ended by chance.
    """
    sentences, beams = live_SP.shape
    size, wanted = logits_RV.shape[1], total_SM.shape[1]
    for s in range(sentences):
        for m in range(wanted):
            total_SM[s, m], gain_SM[s, m], parent_SM[s, m], token_SM[s, m] = _f(-np.inf), _f(-np.inf), 0, 0
        for p in range(beams):
            r = s * beams + p
            for g in range(most_RG.shape[1] - 1, -1, -1):
                if live_SP[s, p] + (most_RG[r, g] - sum_R[r]) <= total_SM[s, wanted - 1]:
                    continue
                for v in range(min((g + 1) * GROUP, size) - 1, g * GROUP - 1, -1):
                    gain = logits_RV[r, v] - sum_R[r]
                    total = live_SP[s, p] + gain
                    if total > total_SM[s, wanted - 1] and not banned_V[v]:
                        m = wanted - 1
                        while m > 0 and total > total_SM[s, m - 1]:
                            total_SM[s, m], gain_SM[s, m] = total_SM[s, m - 1], gain_SM[s, m - 1]
                            parent_SM[s, m], token_SM[s, m] = parent_SM[s, m - 1], token_SM[s, m - 1]
                            m -= 1
                        total_SM[s, m], gain_SM[s, m], parent_SM[s, m], token_SM[s, m] = total, gain, p, v
