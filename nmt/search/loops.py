"""The best next tokens, found by one compiled pass over the logits.

R rows · V vocabulary · G groups of tokens · S sentences · P hypotheses of each · M wanted
"""

from __future__ import annotations

import numpy as np

from nmt.model.compiling import compiled
from nmt.model.inference.loops import greatest, log_sum

GROUP = 64  # tokens that are passed over together, where none of them can be among the best
_f = np.float32


@compiled
def greatest_of_groups(x_RV, most_RG):
    """The greatest number of each row's groups of tokens."""
    rows, size = x_RV.shape
    for r in range(rows):
        for g in range(most_RG.shape[1]):
            most_RG[r, g] = greatest(x_RV[r, g * GROUP : min((g + 1) * GROUP, size)])


@compiled
def log_sums(logits_RV, sum_R, most_RG):
    """log Σ exp of each row, and the greatest logit of each group of tokens."""
    for r in range(logits_RV.shape[0]):
        greatest_of_groups(logits_RV[r : r + 1], most_RG[r : r + 1])
        sum_R[r] = log_sum(logits_RV[r], greatest(most_RG[r]))


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


@compiled
def advance(
    best, live_SP, last_SP, sure_SP, limit_S, eos, divisor, reach_S, best_SK, ended_S, enough, ids_RT, gains_RT, next_,
    ended,
):  # fmt: skip
    """What goes on and what ends, as beam.py tells it: returns how many hypotheses ended and how many sentences go on.

    `best` are the continuations; `last_SP` the end mark's log-probabilities and `sure_SP` whether it is the favourite,
    for sentences at their limit; `divisor` that of hypotheses which end now, `reach_S` that of the best that can come.
    `best_SK` and `ended_S` are brought up to date, all of `next_` is written, and of `ended` as much as there is.
    """
    total_SM, gain_SM, parent_SM, token_SM = best
    parent_R, token_R, live_SN, new_ids_RT, new_gains_RT, going_S = next_
    sentences, beams = live_SP.shape
    width, length = live_SN.shape[1], ids_RT.shape[1]
    count, going = 0, 0
    for s in range(sentences):
        n = 0
        if length >= limit_S[s]:
            for p in range(beams):
                gain = max(last_SP[s, p], _f(-1e9))  # impossible or not, it has to end
                total, cut = live_SP[s, p] + gain, not sure_SP[s, p]
                count = _write_down(total, gain, s, p, cut, divisor, best_SK, ended_S, ended, count)
        else:
            for m in range(total_SM.shape[1]):
                if token_SM[s, m] != eos:
                    if n < width:
                        live_SN[s, n], parent_R[s * width + n] = total_SM[s, m], s * beams + parent_SM[s, m]
                        token_R[s * width + n], new_gains_RT[s * width + n, length] = token_SM[s, m], gain_SM[s, m]
                        n += 1
                elif m < width:
                    total, gain, p = total_SM[s, m], gain_SM[s, m], parent_SM[s, m]
                    count = _write_down(total, gain, s, p, False, divisor, best_SK, ended_S, ended, count)
        for rest in range(n, width):
            live_SN[s, rest], parent_R[s * width + rest] = _f(-np.inf), s * beams
            token_R[s * width + rest], new_gains_RT[s * width + rest, length] = eos, _f(0.0)
        going_S[s] = live_SN[s, 0] / reach_S[s] > best_SK[s, -1] and ended_S[s] < enough
        going += going_S[s]
    _take_over(ids_RT, gains_RT, parent_R, token_R, new_ids_RT, new_gains_RT)
    return count, going


@compiled
def _take_over(ids_RT, gains_RT, parent_R, token_R, new_ids_RT, new_gains_RT):
    """The history of those that hypotheses go on from, and their newest token."""
    length = ids_RT.shape[1]
    for r in range(new_ids_RT.shape[0]):
        parent = parent_R[r]
        for t in range(length):
            new_ids_RT[r, t], new_gains_RT[r, t] = ids_RT[parent, t], gains_RT[parent, t]
        new_ids_RT[r, length] = token_R[r]


@compiled
def _write_down(total, gain, s, p, cut, divisor, best_SK, ended_S, ended, count):
    """A hypothesis that ends, unless it is impossible. Returns how many have."""
    if total == _f(-np.inf):
        return count
    sentence_J, parent_J, total_J, gain_J, score_J, cut_J = ended
    score = total / divisor
    sentence_J[count], parent_J[count], total_J[count] = s, p, total
    gain_J[count], score_J[count], cut_J[count] = gain, score, cut
    ended_S[s] += 1
    k = best_SK.shape[1] - 1
    if score > best_SK[s, k]:
        while k > 0 and score > best_SK[s, k - 1]:
            best_SK[s, k] = best_SK[s, k - 1]
            k -= 1
        best_SK[s, k] = score
    return count + 1
