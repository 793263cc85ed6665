"""The processor's vector registers, as those who write instructions for them need them."""

from __future__ import annotations

from typing import Any

from nmt.model.compiling import AVAILABLE


def features() -> set[str]:
    """What numba compiles for, in LLVM's words; nothing is known of a processor that is not this one."""
    if not AVAILABLE:
        return set()
    from llvmlite import binding
    from numba.core import config as settings

    config: Any = settings

    if config.CPU_NAME or config.CPU_FEATURES:
        return {name[1:] for name in (config.CPU_FEATURES or "").split(",") if name.startswith("+")}
    return {name for name, there in binding.get_host_cpu_features().items() if there}


def _registers(features: set[str]) -> tuple[int, int]:
    """Numbers of 32 bits in a vector register, and how many registers of sums a row of a tile has."""
    if "avx512f" in features:
        return 16, 4
    if "avx2" in features:
        return 8, 2
    return (4, 4) if "neon" in features else (4, 2)


FEATURES = features()
LANES, VECTORS = _registers(FEATURES)

if AVAILABLE:
    from llvmlite import ir
    from numba.core import cgutils

    _INT, _LONG, _BYTE = ir.IntType(32), ir.IntType(64), ir.IntType(8)

    def address(builder: Any, array: Any, indices: list[Any], kind: Any) -> Any:
        """Where numbers of a `kind`, or vectors of it, begin in an array of numba's."""
        offset = ir.Constant(_LONG, 0)
        for index, stride in zip(indices, cgutils.unpack_tuple(builder, array.strides), strict=False):
            offset = builder.add(offset, builder.mul(index, stride))
        start = builder.bitcast(array.data, _BYTE.as_pointer())
        return builder.bitcast(builder.gep(start, [offset]), kind.as_pointer())

    def load(builder: Any, start: Any, place: int) -> Any:
        """The vector in this place after `start`, which need not be aligned."""
        loaded = builder.load(builder.gep(start, [ir.Constant(_LONG, place)]))
        loaded.align = 4
        return loaded

    def store(builder: Any, vector: Any, start: Any, place: int) -> None:
        """Write a vector there."""
        builder.store(vector, builder.gep(start, [ir.Constant(_LONG, place)])).align = 4

    def everywhere(builder: Any, x: Any, vector: Any) -> Any:
        """A vector of this type with `x` in every lane."""
        nothing = ir.Constant(vector, ir.Undefined)
        one = builder.insert_element(nothing, x, ir.Constant(_INT, 0))
        return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(_INT, LANES), [0] * LANES))
