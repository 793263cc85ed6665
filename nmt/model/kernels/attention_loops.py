"""Attention of sentences that stand in rows one after the other, forwards and backwards.

N rows of queries · M rows of keys and values · C columns · Q queries of a sentence · K its keys · E width of a head
B sentences · H heads · 2 queries, keys

The tokens of a sentence are adjacent rows, and a head is a range of columns. Each head of each sentence is copied into
a few small matrices of float32, which stay in the processor's nearest cache while everything is made of them: scores
and weights exist nowhere else. What is kept for the way back is each query's largest score, and one over its Σ exp.
"""

from __future__ import annotations

import numpy as np

from nmt.model.compiling import compiled_part, fused
from nmt.model.inference.loops import power_of_e, total
from nmt.model.kernels.products import multiply
from nmt.model.kernels.team import Loop
from nmt.model.kernels.words import as_in, floats, integers, numbers, read, share
from nmt.model.vectors import LANES

_f = np.float32


@compiled_part
def _padded(count):
    return (count + LANES - 1) // LANES * LANES


@compiled_part
def _load(x_NC, row, rows, column, scale, to_RE):
    """A head of `rows` rows, times `scale`; zeros in the rows after them."""
    width = to_RE.shape[1]
    for r in range(rows):
        x_E, to_E = x_NC[row + r, column : column + width], to_RE[r]
        for e in range(width):
            to_E[e] = read(x_E[e]) * scale
    for r in range(rows, to_RE.shape[0]):
        to_RE[r] = _f(0.0)


@compiled_part
def _store(x_RE, rows, scale, y_NC, row, column):
    width = x_RE.shape[1]
    for r in range(rows):
        x_E, y_E = x_RE[r], y_NC[row + r, column : column + width]
        for e in range(width):
            y_E[e] = as_in(y_NC, x_E[e] * scale)


@compiled_part
def _turn(x_RE, to_ER):
    for r in range(x_RE.shape[0]):
        for e in range(x_RE.shape[1]):
            to_ER[e, r] = x_RE[r, e]


@compiled_part
def _seen(q, keys, causal):
    return min(q + 1, keys) if causal else keys


@compiled_part
def _greatest(x_K, seen):
    """The greatest of those that are seen, compared as whole numbers: see `greatest`."""
    bits_K, none = x_K.view(np.int32), np.int32(-0x80000000)
    most = none
    for k in range(bits_K.shape[0]):
        bits = bits_K[k]
        most = max(most, (bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF))) if k < seen else none)
    most = np.int32(most)
    return np.int32(most ^ ((most >> np.int32(31)) & np.int32(0x7FFFFFFF))).view(np.float32)


@compiled_part
def _powers(x_K, seen, most, part):
    """exp(x - most) times `part`, zero where it is not seen.

    All is computed, then chosen from: loops over a few numbers only take longer than vectors of unused ones.
    """
    for k in range(x_K.shape[0]):
        power = power_of_e(min(x_K[k] - most, _f(0.0))) * part
        x_K[k] = power if k < seen else _f(0.0)


@compiled_part
def _weigh(score_QK, queries, keys, causal, kept_NH, row, head):
    """Scores become their softmax, what is hidden zero."""
    heads = kept_NH.shape[1] // 2
    for q in range(queries):
        score_K, seen = score_QK[q], _seen(q, keys, causal)
        most = _greatest(score_K, seen)
        _powers(score_K, seen, most, _f(1.0))
        part = _f(1.0) / total(score_K)
        for k in range(score_K.shape[0]):
            score_K[k] *= part
        kept_NH[row + q, head], kept_NH[row + q, heads + head] = most, part


@compiled_part
def _weigh_again(score_QK, queries, keys, causal, kept_NH, row, head):
    """The same, by what was kept of it."""
    heads = kept_NH.shape[1] // 2
    for q in range(queries):
        most, part = kept_NH[row + q, head], kept_NH[row + q, heads + head]
        _powers(score_QK[q], _seen(q, keys, causal), most, part)
    for q in range(queries, score_QK.shape[0]):
        score_QK[q] = _f(0.0)


@compiled_part
def _through_softmax(weight_QK, d_weight_QK):
    """The gradient of weights becomes that of scores: w ⊙ (d − Σ w ⊙ d)."""
    for q in range(weight_QK.shape[0]):
        w_K, d_K = weight_QK[q], d_weight_QK[q]
        for k in range(w_K.shape[0]):
            d_K[k] *= w_K[k]
        mean = total(d_K)
        for k in range(w_K.shape[0]):
            d_K[k] = fused(-mean, w_K[k], d_K[k])


@compiled_part
def _matrix(flat, rows, columns):
    return flat[: rows * columns].reshape(rows, columns)


@compiled_part
def _longest(starts_2B, side, first, last):
    most = np.int64(1)
    for b in range(first, last):
        most = max(most, starts_2B[side, b + 1] - starts_2B[side, b])
    return _padded(most)


@compiled_part
def _attend(q_NC, kv_MC, y_ND, w, first, last):
    heads, causal, width = w[8], w[9] > 0, w[15] // w[8]
    starts_2B, kept_NH = integers(w[12], 2, w[7] + 1), floats(w[14], w[0], 2 * heads)
    q_size, k_size = _longest(starts_2B, 0, first, last), _longest(starts_2B, 1, first, last)
    space_q, space_k = np.empty(q_size * width, np.float32), np.empty((2, k_size * width), np.float32)
    space, scale = np.empty(q_size * k_size, np.float32), _f(1.0) / _f(np.sqrt(width))
    for b in range(first, last):
        row, key = starts_2B[0, b], starts_2B[1, b]
        queries, keys = starts_2B[0, b + 1] - row, starts_2B[1, b + 1] - key
        more_q, more_k = _padded(queries), _padded(keys)
        x_QE, x_KE = _matrix(space_q, more_q, width), _matrix(space_k[0], more_k, width)
        turned_EK, score_QK = _matrix(space_k[1], width, more_k), _matrix(space, more_q, more_k)
        for head in range(heads):
            here = head * width
            _load(q_NC, row, queries, w[4] + here, scale, x_QE)
            _load(kv_MC, key, keys, w[5] + here, _f(1.0), x_KE)
            _turn(x_KE, turned_EK)
            multiply(x_QE, turned_EK, score_QK)
            _weigh(score_QK, queries, keys, causal, kept_NH, row, head)
            _load(kv_MC, key, keys, w[6] + here, _f(1.0), x_KE)
            multiply(score_QK, x_KE, x_QE)
            _store(x_QE, queries, _f(1.0), y_ND, row, here)


@Loop
def attend(address):
    """Items are sentences. Words: rows and columns of queries, of keys and values; the columns where heads of queries,
    keys and values begin; sentences, heads, whether the future is hidden; the addresses of queries, of keys and values,
    of starts, of the result and of what is kept; the width of the result.
    """
    w, first, last = share(address)
    q_NC, kv_MC = numbers(address, w[10], w[0], w[1]), numbers(address, w[11], w[2], w[3])
    _attend(q_NC, kv_MC, numbers(address, w[13], w[0], w[15]), w, first, last)


@compiled_part
def _attend_back(q_NC, kv_MC, dy_ND, dq_NC, dkv_MC, w, first, last):
    heads, causal, width = w[8], w[9] > 0, w[15] // w[8]
    starts_2B, kept_NH = integers(w[12], 2, w[7] + 1), floats(w[14], w[0], 2 * heads)
    q_size, k_size = _longest(starts_2B, 0, first, last), _longest(starts_2B, 1, first, last)
    space_q, space_k = np.empty((3, q_size * width), np.float32), np.empty((3, k_size * width), np.float32)
    space, scale = np.empty((2, q_size * k_size), np.float32), _f(1.0) / _f(np.sqrt(width))
    for b in range(first, last):
        row, key = starts_2B[0, b], starts_2B[1, b]
        queries, keys = starts_2B[0, b + 1] - row, starts_2B[1, b + 1] - key
        more_q, more_k = _padded(queries), _padded(keys)
        q_QE, dy_QE = _matrix(space_q[0], more_q, width), _matrix(space_q[1], more_q, width)
        k_KE, v_KE = _matrix(space_k[0], more_k, width), _matrix(space_k[1], more_k, width)
        turned_EK, dq_QE = _matrix(space_k[2], width, more_k), _matrix(space_q[2], more_q, width)
        weight_QK, d_QK = _matrix(space[0], more_q, more_k), _matrix(space[1], more_q, more_k)
        for head in range(heads):
            here = head * width
            _load(q_NC, row, queries, w[4] + here, scale, q_QE)
            _load(kv_MC, key, keys, w[5] + here, _f(1.0), k_KE)
            _turn(k_KE, turned_EK)
            multiply(q_QE, turned_EK, weight_QK)
            _weigh_again(weight_QK, queries, keys, causal, kept_NH, row, head)
            _load(kv_MC, key, keys, w[6] + here, _f(1.0), v_KE)
            _load(dy_ND, row, queries, here, _f(1.0), dy_QE)
            _turn(v_KE, turned_EK)
            multiply(dy_QE, turned_EK, d_QK)
            multiply(weight_QK.T, dy_QE, v_KE)
            _store(v_KE, keys, _f(1.0), dkv_MC, key, w[6] + here)
            _through_softmax(weight_QK, d_QK)
            multiply(d_QK, k_KE, dq_QE)
            _store(dq_QE, queries, scale, dq_NC, row, w[4] + here)
            multiply(d_QK.T, q_QE, v_KE)
            _store(v_KE, keys, _f(1.0), dkv_MC, key, w[5] + here)


@Loop
def attend_back(address):
    """As `attend`, with the result's gradient in the place of the result; then the addresses of the gradients of
    queries, and of keys and values.
    """
    w, first, last = share(address)
    q_NC, kv_MC = numbers(address, w[10], w[0], w[1]), numbers(address, w[11], w[2], w[3])
    dq_NC, dkv_MC = numbers(address, w[16], w[0], w[1]), numbers(address, w[17], w[2], w[3])
    _attend_back(q_NC, kv_MC, numbers(address, w[13], w[0], w[15]), dq_NC, dkv_MC, w, first, last)
