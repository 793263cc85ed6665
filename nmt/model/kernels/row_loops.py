"""Loops over rows: LayerNorm, the residual sum with its dropout, and the softmax of a loss.

N rows · D width · V vocabulary · T threads · 2 mean and one over the deviation, or weight and bias

A row is copied into float32 numbers that stay in the nearest cache; whatever it goes through happens there.
"""

from __future__ import annotations

import numpy as np

from nmt.model.compiling import compiled_part, compiled_sum, fused
from nmt.model.inference.loops import greatest, power_of_e, squares, total
from nmt.model.kernels.team import Loop
from nmt.model.kernels.words import as_in, floats, integers, member, numbers, read, share, shorts

_f = np.float32


@compiled_part
def _copy(x_D, row_D):
    for d in range(row_D.shape[0]):
        row_D[d] = read(x_D[d])


@compiled_part
def _put(row_D, y_D):
    for d in range(row_D.shape[0]):
        y_D[d] = as_in(y_D, row_D[d])


@compiled_sum
def _inner(x_D, y_D):
    """Σ x·y."""
    sum_ = _f(0.0)
    for d in range(x_D.shape[0]):
        sum_ += x_D[d] * y_D[d]
    return sum_


@compiled_part
def _normalize(x_ND, weight_D, bias_D, eps, y_ND, kept_N2, first, last):
    width = x_ND.shape[1]
    row_D = np.empty(width, np.float32)
    for n in range(first, last):
        _copy(x_ND[n], row_D)
        mean = total(row_D) / _f(width)
        factor = _f(1.0) / np.sqrt(squares(row_D, mean) / _f(width) + eps)
        for d in range(width):
            row_D[d] = fused((row_D[d] - mean) * factor, weight_D[d], bias_D[d])
        _put(row_D, y_ND[n])
        kept_N2[n, 0], kept_N2[n, 1] = mean, factor


@Loop
def normalize(address):
    """LayerNorm. Words: the width; addresses of epsilon, input, weight, bias, result, and what is kept of each row."""
    w, first, last = share(address)
    width, n = w[0], last
    eps, weight_D, bias_D = floats(w[1], 1, 1)[0, 0], floats(w[3], 1, width)[0], floats(w[4], 1, width)[0]
    x_ND, y_ND, kept_N2 = numbers(address, w[2], n, width), numbers(address, w[5], n, width), floats(w[6], n, 2)
    _normalize(x_ND, weight_D, bias_D, eps, y_ND, kept_N2, first, last)


@compiled_part
def _normalize_back(x_ND, weight_D, kept_N2, dy_ND, dx_ND, sum_2D, first, last):
    width = x_ND.shape[1]
    row_D, d_D = np.empty(width, np.float32), np.empty(width, np.float32)
    d_weight_D, d_bias_D = sum_2D[0], sum_2D[1]
    for n in range(first, last):
        mean, factor = kept_N2[n, 0], kept_N2[n, 1]
        _copy(x_ND[n], row_D)
        _copy(dy_ND[n], d_D)
        for d in range(width):
            row_D[d] = (row_D[d] - mean) * factor
        for d in range(width):
            d_weight_D[d] = fused(d_D[d], row_D[d], d_weight_D[d])
        for d in range(width):
            d_bias_D[d] += d_D[d]
        for d in range(width):
            d_D[d] *= weight_D[d]
        a, b = total(d_D) / _f(width), _inner(d_D, row_D) / _f(width)
        for d in range(width):
            d_D[d] = (d_D[d] - a - row_D[d] * b) * factor
        _put(d_D, dx_ND[n])


@Loop
def normalize_back(address):
    """The way back. Words: the width; addresses of input, weight, what was kept, the result's gradient, the input's,
    and zeros T×2×D, to which each thread adds its sums of the gradients of weight and bias.
    """
    w, first, last = share(address)
    width, n = w[0], last
    x_ND, weight_D, kept_N2 = numbers(address, w[1], n, width), floats(w[2], 1, width)[0], floats(w[3], n, 2)
    dy_ND, dx_ND = numbers(address, w[4], n, width), numbers(address, w[5], n, width)
    sum_2D = floats(w[6], 2 * (member() + 1), width)[2 * member() :]
    _normalize_back(x_ND, weight_D, kept_N2, dy_ND, dx_ND, sum_2D, first, last)


@compiled_part
def _add_thinned(x_ND, y_ND, level_ND, bound, factor, z_ND, first, last):
    for n in range(first, last):
        x_D, y_D, level_D, z_D = x_ND[n], y_ND[n], level_ND[n], z_ND[n]
        for d in range(z_D.shape[0]):
            y = read(y_D[d]) * factor
            z_D[d] = as_in(z_D, read(x_D[d]) + (y if level_D[d] >= bound else _f(0.0)))


@Loop
def add_thinned(address):
    """x + y, of y only what is kept, times a factor. Words: the width, the level from which on a number is kept;
    addresses of the factor, x, y, levels and result.
    """
    w, first, last = share(address)
    width, n = w[0], last
    x_ND, y_ND, z_ND = (
        numbers(address, w[3], n, width),
        numbers(address, w[4], n, width),
        numbers(address, w[6], n, width),
    )
    _add_thinned(x_ND, y_ND, shorts(w[5], n, width), np.int16(w[1]), floats(w[2], 1, 1)[0, 0], z_ND, first, last)


@compiled_part
def _thinned(y_ND, level_ND, bound, factor, z_ND, first, last):
    for n in range(first, last):
        y_D, level_D, z_D = y_ND[n], level_ND[n], z_ND[n]
        for d in range(z_D.shape[0]):
            y = read(y_D[d]) * factor
            z_D[d] = as_in(z_D, y if level_D[d] >= bound else _f(0.0))


@Loop
def thinned(address):
    """The same without x. Words: as above, but the addresses are of the factor, y, levels and result."""
    w, first, last = share(address)
    width, n = w[0], last
    y_ND, z_ND = numbers(address, w[3], n, width), numbers(address, w[5], n, width)
    _thinned(y_ND, shorts(w[4], n, width), np.int16(w[1]), floats(w[2], 1, 1)[0, 0], z_ND, first, last)


@compiled_part
def _rectify(y_ND, bias_D, first, last):
    for n in range(first, last):
        y_D = y_ND[n]
        for d in range(bias_D.shape[0]):
            y_D[d] = as_in(y_D, max(read(y_D[d]) + bias_D[d], _f(0.0)))


@Loop
def rectify(address):
    """max(0, y + bias) in the place of y. Words: the width; addresses of y and the bias."""
    w, first, last = share(address)
    width, n = w[0], last
    _rectify(numbers(address, w[1], n, width), floats(w[2], 1, width)[0], first, last)


@compiled_part
def _rectify_back(y_ND, dy_ND, dx_ND, sum_D, first, last):
    for n in range(first, last):
        y_D, dy_D, dx_D = y_ND[n], dy_ND[n], dx_ND[n]
        for d in range(sum_D.shape[0]):
            given = read(dy_D[d])
            passed = given if read(y_D[d]) > _f(0.0) else _f(0.0)
            dx_D[d] = as_in(dx_D, passed)
            sum_D[d] += passed


@Loop
def rectify_back(address):
    """The way back. Words: the width; addresses of the result, its gradient, the gradient of y, and zeros T×D, to which
    each thread adds its sum of the bias's gradient.
    """
    w, first, last = share(address)
    width, n = w[0], last
    y_ND, dy_ND, dx_ND = (
        numbers(address, w[1], n, width),
        numbers(address, w[2], n, width),
        numbers(address, w[3], n, width),
    )
    _rectify_back(y_ND, dy_ND, dx_ND, floats(w[4], member() + 1, width)[member()], first, last)


@compiled_part
def _add(x_ND, y_ND, first, last):
    for n in range(first, last):
        x_D, y_D = x_ND[n], y_ND[n]
        for d in range(y_D.shape[0]):
            y_D[d] += read(x_D[d])


@Loop
def add(address):
    """y + x in the place of y, float32 numbers. Words: the width; addresses of x and y."""
    w, first, last = share(address)
    width, n = w[0], last
    _add(numbers(address, w[1], n, width), floats(w[2], n, width), first, last)


@compiled_part
def _to_gradient(z_NV, own_N, sure, nll_N, first, last):
    size = z_NV.shape[1]
    row_V = np.empty(size, np.float32)
    for n in range(first, last):
        z_V, own = z_NV[n], own_N[n]
        _copy(z_V, row_V)
        most, score = greatest(row_V), row_V[own]
        for v in range(size):
            row_V[v] = power_of_e(row_V[v] - most)
        sum_ = total(row_V)
        part = _f(1.0) / sum_
        for v in range(size):
            row_V[v] *= part
        row_V[own] -= sure
        _put(row_V, z_V)
        nll_N[n] = most + np.log(sum_) - score


@Loop
def to_gradient(address):
    """Logits become softmax(logits) - `sure` at the label: what a loss gives back of them. Words: the size of the
    vocabulary; addresses of `sure`, logits, labels, and each row's -log p of its label.
    """
    w, first, last = share(address)
    width, n = w[0], last
    sure, own_N, nll_N = floats(w[1], 1, 1)[0, 0], integers(w[3], 1, n)[0], floats(w[4], 1, n)[0]
    _to_gradient(numbers(address, w[2], n, width), own_N, sure, nll_N, first, last)
