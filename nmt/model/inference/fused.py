"""One instruction that loops ask for by name, since the compiler is not free to put it in where it sees fit."""

from __future__ import annotations

from typing import Any

from nmt.model.inference.compiling import AVAILABLE


def fused(a, b, c):
    """a·b + c of float32 numbers, rounded once where the processor does so in one instruction."""
    return a * b + c


if AVAILABLE:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    def _fused(typing, a, b, c):
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = ir.FloatType()
            function = ir.FunctionType(kind, [kind] * 3)
            return builder.call(cgutils.get_or_insert_function(builder.module, function, "llvm.fmuladd.f32"), arguments)

        return types.float32(types.float32, types.float32, types.float32), generate

    fused = intrinsic(_fused)  # type: ignore[assignment]
