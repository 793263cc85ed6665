"""The processor's vector registers, as those who write instructions for them need them."""

from __future__ import annotations

from collections.abc import Callable
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
    _NONE = ir.Constant(_LONG, 0)

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

    def summed(
        builder: Any, steps: Any, first_RV: list[list[Any]], added: Callable[[Any, Any], Any]
    ) -> list[list[Any]]:
        """Vectors of sums that stay in registers: they begin as `first_RV`; `added(k, sum_RV)` is what step k makes."""
        before, loop, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
        builder.branch(loop)
        builder.position_at_end(loop)
        k = builder.phi(_LONG)
        sum_RV = [[builder.phi(first.type) for first in first_V] for first_V in first_RV]
        next_RV: list[list[Any]] = added(k, sum_RV)
        following = builder.add(k, ir.Constant(_LONG, 1))
        ends = zip([k, *sum(sum_RV, [])], [_NONE, *sum(first_RV, [])], [following, *sum(next_RV, [])], strict=True)
        for number, first, last in ends:
            number.add_incoming(first, before)
            number.add_incoming(last, loop)
        builder.cbranch(builder.icmp_signed("<", following, steps), loop, after)
        builder.position_at_end(after)
        return next_RV

    def everywhere(builder: Any, x: Any, vector: Any) -> Any:
        """A vector of this type with `x` in every lane."""
        nothing = ir.Constant(vector, ir.Undefined)
        one = builder.insert_element(nothing, x, ir.Constant(_INT, 0))
        return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(_INT, LANES), [0] * LANES))
