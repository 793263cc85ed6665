"""Matrix products whose sums stay in the processor's vector registers, compiled by numba.

R rows · K steps of the sum · W outputs of a panel · P panels · N layers · I inputs · O outputs

A tile is the sums of up to `ROWS` rows and of the W outputs of one panel: each weight is read once for all of its rows.
Every sum is made in the order of the inputs, whatever rows stand beside it, so that a row's result is the same in any
company to the last digit. The weights of a panel lie in the order in which a tile reads them. What is multiplied is
told by the type of the weights: float32; int8, four inputs a step (AVX512-VNNI, whose left side is unsigned: 128 is
added to it, and the sums start at what that is worth); or bfloat16 as uint16, two inputs a step (AVX512-BF16).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nmt.model import vectors
from nmt.model.compiling import AVAILABLE, compiled
from nmt.model.vectors import FEATURES, LANES, VECTORS

Numbers = np.ndarray[Any, Any]
ROWS = 6  # with four registers of sums each, their weights and one input, all that a processor has


WIDTH = LANES * VECTORS
DOT = {"int8": {"avx512f", "avx512vnni"}, "uint16": {"avx512f", "avx512bf16"}}
"""The instructions that a type of weights needs; float32 needs none."""


def multiplies(kind: str) -> bool:
    """Whether this processor has the instructions for weights of this type."""
    return DOT.get(kind, set()) <= FEATURES


def panels(weight_OI: Numbers, each: int) -> Numbers:
    """The weights in the order in which tiles read them, P×K×W×`each` inputs of a step; zeros fill the last panel."""
    outputs, inputs = weight_OI.shape
    padded = np.zeros((-(-outputs // WIDTH) * WIDTH, inputs), weight_OI.dtype)
    padded[:outputs] = weight_OI
    return np.ascontiguousarray(padded.reshape(-1, WIDTH, inputs // each, each).transpose(0, 2, 1, 3))


if AVAILABLE:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    _INT, _LONG = ir.IntType(32), ir.IntType(64)
    _FLOATS, _INTS = ir.VectorType(ir.FloatType(), LANES), ir.VectorType(_INT, LANES)
    _KINDS = {
        "float32": (f"llvm.fmuladd.v{LANES}f32", _FLOATS, _FLOATS),
        "int8": ("llvm.x86.avx512.vpdpbusd.512", _INTS, _INTS),
        "uint16": ("llvm.x86.avx512bf16.dpbf16ps.512", _FLOATS, _INTS),
    }
    """The instruction, the type of its sums, and that of what it multiplies."""

    def _tile(typing, rows, z_RI, r, weight, n, p, start, y_RO, o):
        """The products of `rows` rows from `r` on with a panel's weights, written from output `o` on."""
        signature = types.void(rows, z_RI, types.intp, weight, types.intp, types.intp, start, y_RO, types.intp)
        return signature, _written(rows.literal_value, str(weight.dtype)) if hasattr(rows, "literal_value") else None

    def _written(rows: int, kind: str) -> Any:
        """What writes the tile's instructions."""
        name, sums, factors = _KINDS[kind]

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            def array(place: int) -> Any:
                return context.make_array(signature.args[place])(context, builder, arguments[place])

            _, _, r, _, n, p, _, _, o = arguments
            z, weight, start, y = array(1), array(3), array(6), array(7)
            row_R = [builder.add(r, ir.Constant(_LONG, i)) for i in range(rows)]
            z_R = [vectors.address(builder, z, [row], factors.element) for row in row_R]
            weights = vectors.address(builder, weight, [n, p], factors)
            steps = cgutils.unpack_tuple(builder, weight.shape)[2]
            firsts = [vectors.load(builder, vectors.address(builder, start, [n, p], sums), v) for v in range(VECTORS)]
            multiply = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(sums, [sums, factors, factors]), name
            )

            def added(k: Any, sum_RV: list[list[Any]]) -> list[list[Any]]:
                here = builder.gep(weights, [builder.mul(k, ir.Constant(_LONG, VECTORS))])
                weight_V = [vectors.load(builder, here, v) for v in range(VECTORS)]
                following = []
                for z_I, sum_V in zip(z_R, sum_RV, strict=True):
                    x = builder.load(builder.gep(z_I, [k]))
                    if kind == "int8":
                        x = builder.xor(x, ir.Constant(_INT, 0x80808080))
                    x, pairs = vectors.everywhere(builder, x, factors), zip(sum_V, weight_V, strict=True)
                    each = [[x, w, sum_] if kind == "float32" else [sum_, x, w] for sum_, w in pairs]
                    following.append([builder.call(multiply, operands) for operands in each])
                return following

            for row, sum_V in zip(row_R, vectors.summed(builder, steps, [firsts] * rows, added), strict=True):
                ends = vectors.address(builder, y, [row, o], sums)
                for v, sum_ in enumerate(sum_V):
                    vectors.store(builder, sum_, ends, v)
            return context.get_dummy_value()

        return generate

    def _apart(typing):
        """Keeps the function that calls it one function: copied into every place it is called from, it takes long to
        compile."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            builder.function.attributes.add("noinline")
            return context.get_dummy_value()

        return types.void(), generate

    tile: Any = intrinsic(prefer_literal=True)(_tile)
    apart: Any = intrinsic(_apart)


@compiled
def panel(z_RI, weight_NPKW, n, p, start_NPW, y_RO, o):
    """All rows with the weights of one panel."""
    apart()
    rows = z_RI.shape[0]
    r = 0
    while rows - r >= ROWS:
        tile(ROWS, z_RI, r, weight_NPKW, n, p, start_NPW, y_RO, o)
        r += ROWS
    if rows - r == 5:
        tile(5, z_RI, r, weight_NPKW, n, p, start_NPW, y_RO, o)
    elif rows - r == 4:
        tile(4, z_RI, r, weight_NPKW, n, p, start_NPW, y_RO, o)
    elif rows - r == 3:
        tile(3, z_RI, r, weight_NPKW, n, p, start_NPW, y_RO, o)
    elif rows - r == 2:
        tile(2, z_RI, r, weight_NPKW, n, p, start_NPW, y_RO, o)
    elif rows - r == 1:
        tile(1, z_RI, r, weight_NPKW, n, p, start_NPW, y_RO, o)


@compiled
def multiply(z_RI, weight_NPKW, n, start_NPW, y_RO):
    """The products of the rows with the weights of layer `n`."""
    rows, outputs = y_RO.shape
    whole = outputs // WIDTH
    for p in range(whole):
        panel(z_RI, weight_NPKW, n, p, start_NPW, y_RO, p * WIDTH)
    if outputs > whole * WIDTH:
        rest_RW = np.empty((rows, WIDTH), y_RO.dtype)
        panel(z_RI, weight_NPKW, n, whole, start_NPW, rest_RW, np.int64(0))  # compiled as those above
        for r in range(rows):
            for o in range(whole * WIDTH, outputs):
                y_RO[r, o] = rest_RW[r, o - whole * WIDTH]
