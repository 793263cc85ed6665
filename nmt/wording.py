"""Numbers in sentences."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """`1 line` or `2,000 lines`: the number with its noun, `many` of which may be told where an s is not enough."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def agreeing(number: int, unit: str) -> str:
    """The unit, such as `lines`, as it stands behind a number told elsewhere."""
    return unit.removesuffix("s") if number == 1 else unit


def bad_bytes(number: int) -> str:
    """What is told of bytes that were read and are no text."""
    were = counted(number, "byte was", "bytes were")
    return f"{were} not valid UTF-8; U+FFFD stands in {'its' if number == 1 else 'their'} place"


def span(seconds: float) -> str:
    """A time for people: 12 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
