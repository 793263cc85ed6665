"""What a Transformer's encoder and decoder compute, as one compiled call each.

N layers · R rows · D width · H heads · E width of a head · F feed-forward · M joints · S sentences · L source · T steps
P hypotheses of a sentence · V vocabulary · K steps of a product · W outputs of a panel
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmt.model.compiling import compiled, fused
from nmt.model.inference.loops import (
    add_and_norm,
    attend_to_past,
    attend_to_source,
    attend_within,
    rectify,
    scale,
    spread,
)
from nmt.model.inference.products import Product
from nmt.model.inference.tiles import multiply

Numbers = np.ndarray[Any, Any]
_FEW = 24
"""Rows whose logits stay in a processor's caches."""
_SOME = 96
"""Tokens whose keys and values do."""
_ONLY = np.int64(0)
"""The layer of products that have but one; a bare 0 would be a type of its own, and compiled anew."""
_f = np.float32


class Joints(NamedTuple):
    """What stands before the first part, between each two, and after the last one: none or up to two LayerNorms."""

    after_MD: Numbers
    """Weights of the one that the residual sum is given, M×0 where there is none; nothing comes before the first."""
    after_bias_MD: Numbers
    before_MD: Numbers
    """Of the one that the next part reads through."""
    before_bias_MD: Numbers


class Encoder(NamedTuple):
    """All layers of an encoder."""

    project: Product
    output: Product
    inner: Product
    outer: Product
    joints: Joints


class Decoder(NamedTuple):
    """All layers of a decoder, and the output matrix."""

    project: Product
    output: Product
    cross_project: Product
    cross_output: Product
    inner: Product
    outer: Product
    joints: Joints
    predict: Product


@compiled
def _room(y, rows, outputs):
    """Rows of sums in the memory of `y`."""
    return y[: rows * outputs].reshape(rows, outputs)


@compiled
def _join(x_RD, y_RD, scale_R, product, n, joints, m, eps, z_RD):
    """Add what a part gave, `y` of `product`, and write what the next one reads."""
    add_and_norm(
        x_RD, y_RD, scale_R, product.column_NO[n], product.bias_NO[n],
        joints.after_MD[m], joints.after_bias_MD[m], joints.before_MD[m], joints.before_bias_MD[m], eps, z_RD, scale_R,
    )  # fmt: skip


@compiled
def _begin(x_RD, joints, eps, z_RD, scale_R):
    """What the first part reads."""
    nothing_D = np.empty(0, np.float32)
    before_D, before_bias_D = joints.before_MD[0], joints.before_bias_MD[0]
    add_and_norm(x_RD, None, None, None, None, nothing_D, nothing_D, before_D, before_bias_D, eps, z_RD, scale_R)


@compiled
def _feed_forward(z_RD, y, scale_R, inner, outer, n, hidden_RF, y_RD):
    """The feed-forward part of layer `n`; `y_RD` is what its outer product gives."""
    y_RF = _room(y, z_RD.shape[0], hidden_RF.shape[1])
    multiply(z_RD, inner.weight_NPKW, n, inner.start_NPW, y_RF)
    rectify(y_RF, scale_R, inner.column_NO[n], inner.bias_NO[n], hidden_RF, scale_R)
    multiply(hidden_RF, outer.weight_NPKW, n, outer.start_NPW, y_RD)


@compiled
def encode(x_ND, encoder, heads, inputs, eps, begin_S, length_S, scale_N, memory_ND):
    """The states of all tokens, written to `memory_ND`; `x_ND`, the embedded ones, is used up.

    `inputs` are the feed-forward part's. `scale_N` is room for scales, or None.
    """
    tokens, width = x_ND.shape
    layers = encoder.project.weight_NPKW.shape[0]
    z_ND = np.empty((tokens, width), encoder.project.weight_NPKW.dtype)
    hidden_NF = np.empty((tokens, inputs), z_ND.dtype)
    y = np.empty(tokens * max(3 * width, inputs), encoder.project.start_NPW.dtype)
    _begin(x_ND, encoder.joints, eps, z_ND, scale_N)
    for n in range(layers):
        y_NO, y_ND = _room(y, tokens, 3 * width), _room(y, tokens, width)
        multiply(z_ND, encoder.project.weight_NPKW, n, encoder.project.start_NPW, y_NO)
        column, bias = encoder.project.column_NO[n], encoder.project.bias_NO[n]
        attend_within(y_NO, scale_N, column, bias, heads, begin_S, length_S, z_ND, scale_N)
        multiply(z_ND, encoder.output.weight_NPKW, n, encoder.output.start_NPW, y_ND)
        _join(x_ND, y_ND, scale_N, encoder.output, n, encoder.joints, 2 * n + 1, eps, z_ND)
        _feed_forward(z_ND, y, scale_N, encoder.inner, encoder.outer, n, hidden_NF, y_ND)
        if n + 1 < layers:
            _join(x_ND, y_ND, scale_N, encoder.outer, n, encoder.joints, 2 * n + 2, eps, z_ND)
    last, joints = layers - 1, encoder.joints
    add_and_norm(
        x_ND, y_ND, scale_N, encoder.outer.column_NO[last], encoder.outer.bias_NO[last], joints.after_MD[-1],
        joints.after_bias_MD[-1], joints.before_MD[-1], joints.before_bias_MD[-1], eps, memory_ND, None,
    )  # fmt: skip


@compiled
def remember(memory_ND, product, begin_S, length_S, scale_N, memory_KSLD):
    """The source's keys and values for all decoder layers, some sentences at a time."""
    kinds, sentences, _, width = memory_KSLD.shape
    longest = 0
    for s in range(sentences):
        longest = max(longest, length_S[s])
    y = np.empty((_SOME + longest) * kinds * width, product.start_NPW.dtype)
    nothing_D = np.empty(0, np.float32)
    first = 0
    while first < sentences:
        last, tokens = first, 0
        while last < sentences and (tokens == 0 or tokens + length_S[last] <= _SOME):
            tokens += length_S[last]
            last += 1
        z_ND = np.empty((tokens, width), product.weight_NPKW.dtype)
        here = memory_ND[begin_S[first] : begin_S[first] + tokens]
        add_and_norm(here, None, None, None, None, nothing_D, nothing_D, nothing_D, nothing_D, _f(0.0), z_ND, scale_N)
        y_NO = _room(y, tokens, kinds * width)
        multiply(z_ND, product.weight_NPKW, _ONLY, product.start_NPW, y_NO)
        column, bias = product.column_NO[0], product.bias_NO[0]
        spread(y_NO, scale_N, column, bias, first, last, begin_S, length_S, memory_KSLD)
        first = last


@compiled
def embed(token_R, weight_VD, scale, place_D, x_RD):
    """Embeddings of tokens that stand at one place."""
    for r in range(x_RD.shape[0]):
        for d in range(x_RD.shape[1]):
            x_RD[r, d] = fused(weight_VD[token_R[r], d], scale, place_D[d])


@compiled
def decode(
    x_RD, decoder, inputs, eps, step, beams, slot_S, past_RT, length_S, cache_N2STPHE, memory_N2SLHE, scale_R,
    sums_RV, logits_RV, watched, looked_RL,
):  # fmt: skip
    """The logits after one more token of every hypothesis; `x_RD`, the embedded ones, is used up.

    `sums_RV` is the memory of `logits_RV`, of the type of the sums. `looked_RL`, unless it is empty, is told how much
    each hypothesis looks at each source token in the layer `watched`.
    """
    rows, width = x_RD.shape
    layers = decoder.project.weight_NPKW.shape[0]
    joints = decoder.joints
    z_RD = np.empty((rows, width), decoder.project.weight_NPKW.dtype)
    hidden_RF = np.empty((rows, inputs), z_RD.dtype)
    y = np.empty(rows * max(3 * width, inputs), decoder.project.start_NPW.dtype)
    y_RO, y_RD = _room(y, rows, 3 * width), _room(y, rows, width)
    _begin(x_RD, joints, eps, z_RD, scale_R)
    for n in range(layers):
        multiply(z_RD, decoder.project.weight_NPKW, n, decoder.project.start_NPW, y_RO)
        column, bias = decoder.project.column_NO[n], decoder.project.bias_NO[n]
        k_STPHE, v_STPHE = cache_N2STPHE[n, 0], cache_N2STPHE[n, 1]
        attend_to_past(y_RO, scale_R, column, bias, step, beams, slot_S, past_RT, k_STPHE, v_STPHE, z_RD, scale_R)
        multiply(z_RD, decoder.output.weight_NPKW, n, decoder.output.start_NPW, y_RD)
        _join(x_RD, y_RD, scale_R, decoder.output, n, joints, 3 * n + 1, eps, z_RD)

        multiply(z_RD, decoder.cross_project.weight_NPKW, n, decoder.cross_project.start_NPW, y_RD)
        column, bias = decoder.cross_project.column_NO[n], decoder.cross_project.bias_NO[n]
        k_SLHE, v_SLHE = memory_N2SLHE[n, 0], memory_N2SLHE[n, 1]
        seen_RL = looked_RL[: rows if n == watched else 0]
        attend_to_source(y_RD, scale_R, column, bias, beams, slot_S, length_S, k_SLHE, v_SLHE, z_RD, scale_R, seen_RL)
        multiply(z_RD, decoder.cross_output.weight_NPKW, n, decoder.cross_output.start_NPW, y_RD)
        _join(x_RD, y_RD, scale_R, decoder.cross_output, n, joints, 3 * n + 2, eps, z_RD)

        _feed_forward(z_RD, y, scale_R, decoder.inner, decoder.outer, n, hidden_RF, y_RD)
        _join(x_RD, y_RD, scale_R, decoder.outer, n, joints, 3 * n + 3, eps, z_RD)
    _predict(z_RD, decoder.predict, scale_R, sums_RV, logits_RV)


@compiled
def _predict(z_RD, product, scale_R, sums_RV, logits_RV):
    """The output matrix's product."""
    rows = z_RD.shape[0]
    few = rows if scale_R is None else _FEW
    for first in range(0, rows, few):
        last = min(first + few, rows)
        multiply(z_RD[first:last], product.weight_NPKW, _ONLY, product.start_NPW, sums_RV[first:last])
        if scale_R is not None:
            column, bias = product.column_NO[0], product.bias_NO[0]
            scale(sums_RV[first:last], scale_R[first:last], column, bias, logits_RV[first:last])
