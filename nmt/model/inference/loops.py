"""The small operations between two matrix products, compiled by numba: one pass over each row, no copies.

R rows · D width · V vocabulary · O outputs of a product · H heads · E width of a head · S sentences · L source
N tokens of all sentences · T steps · P hypotheses of a sentence · 1 broadcast

Every row is computed by itself, always in the same order: its result is the same whatever rows stand beside it, to the
last digit. A row has been read before it is written, so that the scales of what is written may replace those of what
is read. What a product gives is read as float32, or as whole numbers (R×O) times a scale for each row and one for
each output, with a bias; what the next product reads is written as float32, as bfloat16 in uint16, or as whole numbers
from -127 to 127 and a scale for each row. None stands for what there is not; numba compiles each such case by itself.
"""

from __future__ import annotations

import numpy as np

from nmt.model.compiling import compiled, compiled_sum, fused

_f = np.float32


@compiled
def power_of_e(x: np.float32) -> np.float32:
    """e to the x ≤ 0, to about 1e-7 of itself, by operations that vectorize (Cephes' polynomial for exp)."""
    x = max(x, _f(-87.0))
    twos = np.floor(fused(x, _f(1.44269504), _f(0.5)))
    rest = fused(twos, _f(2.12194440e-4), fused(twos, _f(-0.693359375), x))  # ln 2 in two parts: no digit is lost
    sum_ = _f(1.9875691500e-4)
    sum_ = fused(sum_, rest, _f(1.3981999507e-3))
    sum_ = fused(sum_, rest, _f(8.3334519073e-3))
    sum_ = fused(sum_, rest, _f(4.1665795894e-2))
    sum_ = fused(sum_, rest, _f(1.6666665459e-1))
    sum_ = fused(sum_, rest, _f(5.0000001201e-1))
    sum_ = fused(sum_, rest * rest, rest) + _f(1.0)
    return sum_ * np.int32((np.int32(twos) + np.int32(127)) << np.int32(23)).view(np.float32)


@compiled
def read(y_O, row_R, column_O, bias_O, r, o):
    """One output of row `r` of a product.

    `y_O`, and scales and bias with it, may be a part of the row: a place counted from the part's beginning is seen not
    to be negative, and only then does the loop around it vectorize.
    """
    y = _f(y_O[o])
    if row_R is not None:
        y = fused(y, row_R[r] * column_O[o], bias_O[o])
    return y


@compiled_sum
def total(x_N):
    """Σ x."""
    sum_ = _f(0.0)
    for n in range(x_N.shape[0]):
        sum_ += x_N[n]
    return sum_


@compiled_sum
def squares(x_N, mean):
    """Σ (x - mean)²."""
    sum_ = _f(0.0)
    for n in range(x_N.shape[0]):
        sum_ += (x_N[n] - mean) * (x_N[n] - mean)
    return sum_


@compiled_sum
def inner_product(x_HE, y_HE, h):
    """Σ x·y of one head."""
    sum_ = _f(0.0)
    for e in range(x_HE.shape[1]):
        sum_ += x_HE[h, e] * y_HE[h, e]
    return sum_


@compiled_sum
def sum_of_powers(x_N, highest):
    """Σ exp(x - highest)."""
    sum_ = _f(0.0)
    for n in range(x_N.shape[0]):
        sum_ += power_of_e(x_N[n] - highest)
    return sum_


@compiled
def log_sum(x_N, highest):
    """log Σ exp x, of which `highest` is the greatest."""
    return highest + np.log(sum_of_powers(x_N, highest))


@compiled
def greatest(x_N):
    """The greatest of some numbers, compared as whole numbers: a maximum of floating-point ones would not vectorize."""
    bits_N, most = x_N.view(np.int32), np.int32(-0x80000000)
    for n in range(bits_N.shape[0]):
        bits = bits_N[n]
        most = max(most, bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF)))
    most = np.int32(most)
    return np.int32(most ^ ((most >> np.int32(31)) & np.int32(0x7FFFFFFF))).view(np.float32)


@compiled
def half(x: np.float32) -> np.uint16:
    """The nearest bfloat16, of two as near the even one. No number stays none: rounding could make it zero."""
    bits = np.float32(x).view(np.uint32)
    if x != x:
        return np.uint16(0x7FC0)
    return np.uint16((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16))


@compiled
def write(z_RD, scale_R, r, row_D):
    """A row for the next product to read."""
    width = row_D.shape[0]
    if scale_R is not None:
        bits_D, most_bits = row_D.view(np.int32), np.int32(0)
        for d in range(width):
            most_bits = max(most_bits, bits_D[d] & np.int32(0x7FFFFFFF))
        most = max(np.int32(most_bits).view(np.float32), _f(1e-30))
        scale_R[r] = most / _f(127.0)
        steps = _f(127.0) / most
        for d in range(width):
            z_RD[r, d] = np.int8(np.rint(row_D[d] * steps))
    elif z_RD.itemsize == 2:
        for d in range(width):
            z_RD[r, d] = half(row_D[d])
    else:
        for d in range(width):
            z_RD[r, d] = row_D[d]


@compiled
def normalize(row_D, weight_D, bias_D, eps, result_D):
    """LayerNorm of one row."""
    width = row_D.shape[0]
    mean = total(row_D) / _f(width)
    factor = _f(1.0) / np.sqrt(squares(row_D, mean) / _f(width) + _f(eps))
    for d in range(width):
        result_D[d] = fused((row_D[d] - mean) * factor, weight_D[d], bias_D[d])


@compiled
def add_and_norm(
    x_RD, y_RD, row_R, column_D, bias_D, after_D, after_bias_D, before_D, before_bias_D, eps, z_RD, scale_R
):
    """Residual: `x` becomes x + y, normalized if there is an `after`; the next part reads it, normalized `before`.

    Of a LayerNorm that there is not, weights and bias are empty.
    """
    rows, width = x_RD.shape
    row_D = np.empty(width, np.float32)
    for r in range(rows):
        x_D = x_RD[r]
        if y_RD is not None:
            y_D = y_RD[r]
            for d in range(width):
                x_D[d] = x_D[d] + read(y_D, row_R, column_D, bias_D, r, d)
        if after_D.shape[0] > 0:
            normalize(x_D, after_D, after_bias_D, eps, x_D)
        if before_D.shape[0] > 0:
            normalize(x_D, before_D, before_bias_D, eps, row_D)
            write(z_RD, scale_R, r, row_D)
        else:
            write(z_RD, scale_R, r, x_D)


@compiled
def rectify(y_RO, row_R, column_O, bias_O, z_RO, scale_R):
    """max(0, y)."""
    rows, width = y_RO.shape
    row_O = np.empty(width, np.float32)
    for r in range(rows):
        y_O = y_RO[r]
        for o in range(width):
            row_O[o] = max(read(y_O, row_R, column_O, bias_O, r, o), _f(0.0))
        write(z_RO, scale_R, r, row_O)


@compiled
def soften(score_HK, head, count):
    """The first `count` scores of a head become their softmax."""
    score_K = score_HK[head, :count]
    most = greatest(score_K)
    for k in range(count):
        score_K[k] = power_of_e(score_K[k] - most)
    share = _f(1.0) / total(score_K)
    for k in range(count):
        score_K[k] *= share


@compiled
def compare(q_HE, k_HE, score_HK, place):
    """How well a key fits the query, for each head."""
    for h in range(q_HE.shape[0]):
        score_HK[h, place] = inner_product(q_HE, k_HE, h)


@compiled
def mix_in(score_HK, place, v_HE, y_HE):
    """Add a value's share, for each head."""
    heads, each = y_HE.shape
    for h in range(heads):
        share = score_HK[h, place]
        for e in range(each):
            y_HE[h, e] = fused(share, v_HE[h, e], y_HE[h, e])


@compiled
def part_of(y_RO, row_R, column_O, bias_O, r, which, x_HE):
    """Of queries, keys and values, which stand side by side in row `r`, those in place `which`."""
    heads, each = x_HE.shape
    for h in range(heads):
        first = (which * heads + h) * each
        y_E, column_E, bias_E = y_RO[r, first : first + each], column_O, bias_O
        if row_R is not None:
            column_E, bias_E = column_O[first : first + each], bias_O[first : first + each]
        for e in range(each):
            x_HE[h, e] = read(y_E, row_R, column_E, bias_E, r, e)


@compiled
def attend_to_past(y_RO, row_R, column_O, bias_O, place, beams, slot_S, past_RT, k_STPHE, v_STPHE, z_RD, scale_R):
    """Self-attention of one more token of every hypothesis.

    `y` holds queries, keys and values side by side; the latter two are stored at step `place`. `past_RT` tells at
    which of its sentence's places a hypothesis's tokens before that are stored.
    """
    _, _, _, heads, each = k_STPHE.shape
    q_HE, mixed_HE = np.empty((heads, each), np.float32), np.empty((heads, each), np.float32)
    mixed_D = mixed_HE.reshape(heads * each)
    score_HT = np.empty((heads, place + 1), np.float32)
    for r in range(slot_S.shape[0] * beams):
        slot, own = slot_S[r // beams], r % beams
        k_HE, v_HE = k_STPHE[slot, place, own], v_STPHE[slot, place, own]
        part_of(y_RO, row_R, column_O, bias_O, r, 0, q_HE)
        part_of(y_RO, row_R, column_O, bias_O, r, 1, k_HE)
        part_of(y_RO, row_R, column_O, bias_O, r, 2, v_HE)
        for t in range(place):
            compare(q_HE, k_STPHE[slot, t, past_RT[r, t]], score_HT, t)
        compare(q_HE, k_HE, score_HT, place)
        mixed_HE[:] = _f(0.0)
        for h in range(heads):
            soften(score_HT, h, place + 1)
        for t in range(place):
            mix_in(score_HT, t, v_STPHE[slot, t, past_RT[r, t]], mixed_HE)
        mix_in(score_HT, place, v_HE, mixed_HE)
        write(z_RD, scale_R, r, mixed_D)


@compiled
def attend_to_source(y_RD, row_R, column_D, bias_D, beams, slot_S, length_S, k_SLHE, v_SLHE, z_RD, scale_R, looked_RL):
    """Cross-attention of every hypothesis to its sentence's source.

    `looked_RL`, unless it is empty, is told how much each looks at each source token, mean over the heads.
    """
    _, longest, heads, each = k_SLHE.shape
    q_HE, mixed_HE = np.empty((heads, each), np.float32), np.empty((heads, each), np.float32)
    mixed_D = mixed_HE.reshape(heads * each)
    score_HL = np.empty((heads, longest), np.float32)
    for r in range(slot_S.shape[0] * beams):
        slot = slot_S[r // beams]
        length = length_S[slot]
        part_of(y_RD, row_R, column_D, bias_D, r, 0, q_HE)
        for key in range(length):
            compare(q_HE, k_SLHE[slot, key], score_HL, key)
        mixed_HE[:] = _f(0.0)
        for h in range(heads):
            soften(score_HL, h, length)
        for key in range(length):
            mix_in(score_HL, key, v_SLHE[slot, key], mixed_HE)
        if looked_RL.shape[0] > 0:
            for key in range(length):
                share = _f(0.0)
                for h in range(heads):
                    share += score_HL[h, key]
                looked_RL[r, key] = share / _f(heads)
        write(z_RD, scale_R, r, mixed_D)


@compiled
def attend_within(y_NO, row_N, column_O, bias_O, heads, begin_S, length_S, z_ND, scale_N):
    """Self-attention of the encoder: every token of a sentence to all of it. `y` holds queries, keys and values."""
    each = z_ND.shape[1] // heads
    longest = 0
    for s in range(length_S.shape[0]):
        longest = max(longest, length_S[s])
    k_LHE, v_LHE = np.empty((longest, heads, each), np.float32), np.empty((longest, heads, each), np.float32)
    q_HE, mixed_HE = np.empty((heads, each), np.float32), np.empty((heads, each), np.float32)
    mixed_D = mixed_HE.reshape(heads * each)
    score_HL = np.empty((heads, longest), np.float32)
    for s in range(length_S.shape[0]):
        begin, length = begin_S[s], length_S[s]
        for key in range(length):
            part_of(y_NO, row_N, column_O, bias_O, begin + key, 1, k_LHE[key])
            part_of(y_NO, row_N, column_O, bias_O, begin + key, 2, v_LHE[key])
        for n in range(begin, begin + length):
            part_of(y_NO, row_N, column_O, bias_O, n, 0, q_HE)
            for key in range(length):
                compare(q_HE, k_LHE[key], score_HL, key)
            mixed_HE[:] = _f(0.0)
            for h in range(heads):
                soften(score_HL, h, length)
            for key in range(length):
                mix_in(score_HL, key, v_LHE[key], mixed_HE)
            write(z_ND, scale_N, n, mixed_D)


@compiled
def spread(y_NO, row_N, column_O, bias_O, first, last, begin_S, length_S, memory_KSLD):
    """The source's keys and values of all decoder layers, K times D side by side, each in its own place.

    `y` begins with the tokens of sentence `first`, and ends with those of the one before `last`.
    """
    kinds, _, _, width = memory_KSLD.shape
    for s in range(first, last):
        for key in range(length_S[s]):
            n = begin_S[s] - begin_S[first] + key
            for k in range(kinds):
                here = slice(k * width, (k + 1) * width)
                y_D, column_D, bias_D, memory_D = y_NO[n, here], column_O, bias_O, memory_KSLD[k, s, key]
                if row_N is not None:
                    column_D, bias_D = column_O[here], bias_O[here]
                for d in range(width):
                    memory_D[d] = read(y_D, row_N, column_D, bias_D, n, d)


@compiled
def scale(y_RO, row_R, column_O, bias_O, result_RO):
    """What a product gives, with its scales and bias applied; `result_RO` may be the same memory."""
    for r in range(y_RO.shape[0]):
        y_O, result_O = y_RO[r], result_RO[r]
        for o in range(y_O.shape[0]):
            result_O[o] = read(y_O, row_R, column_O, bias_O, r, o)


@compiled
def add_probabilities(logits_RV, total_RV):
    """`total_RV` holds logarithms of sums of probabilities, at first -inf: those of the logits' softmax are added."""
    for r in range(logits_RV.shape[0]):
        x_V, total_V = logits_RV[r], total_RV[r]
        sum_ = log_sum(x_V, greatest(x_V))
        for v in range(x_V.shape[0]):
            one, other = x_V[v] - sum_, total_V[v]
            total_V[v] = max(one, other) + np.log(_f(1.0) + power_of_e(min(one, other) - max(one, other)))
