"""Products of small matrices of float32, whose sums stay in the processor's vector registers.

R rows · K steps of the sum · C columns
"""

from __future__ import annotations

from typing import Any

from nmt.model import vectors as registers
from nmt.model.compiling import AVAILABLE, compiled_part
from nmt.model.vectors import LANES

ROWS = 4  # of a block; matrices have a multiple of it, and of LANES columns

if AVAILABLE:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    _FLOAT, _LONG, _BYTE = ir.FloatType(), ir.IntType(64), ir.IntType(8)
    _FLOATS = ir.VectorType(_FLOAT, LANES)

    def _block(typing, vectors, a_RK, r, b_KC, c, y_RC):
        """y = a·b in ROWS rows from `r` on and as many vectors of columns from `c` on."""
        signature = types.void(vectors, a_RK, types.intp, b_KC, types.intp, y_RC)
        return signature, _written(vectors.literal_value) if hasattr(vectors, "literal_value") else None

    def _written(vectors: int) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            _, _, r, _, c, _ = arguments
            a, b, y = (context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (1, 3, 5))
            steps = cgutils.unpack_tuple(builder, a.shape)[1]
            rows = [builder.add(r, ir.Constant(_LONG, row)) for row in range(ROWS)]
            a_R = [registers.address(builder, a, [row], _FLOAT) for row in rows]
            step_a = cgutils.unpack_tuple(builder, a.strides)[1]
            zero = ir.Constant(_FLOATS, [0.0] * LANES)
            add = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(_FLOATS, [_FLOATS] * 3), f"llvm.fmuladd.v{LANES}f32"
            )

            def added(k: Any, sum_RV: list[list[Any]]) -> list[list[Any]]:
                here = registers.address(builder, b, [k, c], _FLOATS)
                b_V = [registers.load(builder, here, v) for v in range(vectors)]
                offset, sums = builder.mul(k, step_a), []
                for a_K, sum_V in zip(a_R, sum_RV, strict=True):
                    place = builder.bitcast(builder.gep(builder.bitcast(a_K, _BYTE.as_pointer()), [offset]), a_K.type)
                    x = registers.everywhere(builder, builder.load(place), _FLOATS)
                    sums.append([builder.call(add, [x, factor, sum_]) for sum_, factor in zip(sum_V, b_V, strict=True)])
                return sums

            total_RV = registers.summed(builder, steps, [[zero] * vectors] * ROWS, added)
            for row, sum_V in zip(rows, total_RV, strict=True):
                ends = registers.address(builder, y, [row, c], _FLOATS)
                for v, sum_ in enumerate(sum_V):
                    registers.store(builder, sum_, ends, v)
            return context.get_dummy_value()

        return generate

    block: Any = intrinsic(prefer_literal=True)(_block)


@compiled_part
def multiply(a_RK, b_KC, y_RC):
    """y = a·b, of which a may be the other way round in memory. Rows: a multiple of ROWS; columns: one of LANES."""
    rows, columns = y_RC.shape
    for r in range(0, rows, ROWS):
        c = 0
        while columns - c >= 4 * LANES:
            block(4, a_RK, r, b_KC, c, y_RC)
            c += 4 * LANES
        rest = (columns - c) // LANES
        if rest == 3:
            block(3, a_RK, r, b_KC, c, y_RC)
        elif rest == 2:
            block(2, a_RK, r, b_KC, c, y_RC)
        elif rest == 1:
            block(1, a_RK, r, b_KC, c, y_RC)
