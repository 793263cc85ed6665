"""What must come through translation unchanged: addresses, numbers, placeholders, and whatever a pattern finds."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nmt.errors import NmtError

PATTERNS = {
    "url": r"""(?:(?:https?|ftp)://|\bwww\.)[^\s<>"“”«»]*[^\s<>"“”«».,;:!?)\]}'’…]""",
    "email": r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.\w{2,}",
    "placeholder": (
        r"\$?\{\{?[\w.:-]*\}\}?"  # {0} {} {{name}} ${name}
        r"|(?<!\d)%(?:\d+\$|\(\w+\))?[-+#0]*\d*(?:\.\d+)?[sdiufgexXco@](?![^\W\d_]{2})"  # %s %1$d %(name)s %05.2f
        r"|(?<!\w)__\w+?__(?!\w)"  # __VAR__
    ),
    "number": r"(?<![\w.,])\d+(?:[.,:/]\d+)*(?!\w)",
}
"""By name, in the order in which they are looked for: a number within an address belongs to the address."""


class Protector:
    """Finds what is protected, the same in source and translation."""

    def __init__(self, kinds: Sequence[str] = (), patterns: Sequence[str] = ()) -> None:
        """`kinds` are names of `PATTERNS`, `patterns` regular expressions. Raises NmtError for what is neither."""
        for kind in kinds:
            if kind not in PATTERNS:
                raise NmtError(
                    f"{kind!r} is no kind of text to protect", f"the kinds are {', '.join(PATTERNS)}, and all"
                )
        for pattern in patterns:
            try:
                re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                raise NmtError(
                    f"the pattern {pattern!r} is no regular expression: {error}", "a backslash takes a sign for itself"
                ) from error
        chosen = [*patterns, *(pattern for kind, pattern in PATTERNS.items() if kind in kinds)]
        # each for itself: joined into one, they would share their flags and the names and numbers of their groups
        self._patterns = [re.compile(pattern) for pattern in chosen]

    def find(self, text: str) -> list[str]:
        """The protected spans of `text`, from left to right; of those that begin together, the first pattern's."""
        place, spans = 0, []
        ahead = {number: (-1, -1) for number in range(len(self._patterns))}
        while ahead:
            for number in [number for number, (start, _) in ahead.items() if start < place]:
                found = _next(self._patterns[number], text, place)
                if found:
                    ahead[number] = found
                else:
                    del ahead[number]
            if ahead:
                start, place = ahead[min(ahead, key=lambda number: (ahead[number][0], number))]
                spans.append(text[start:place])
        return spans


def _next(pattern: re.Pattern[str], text: str, place: int) -> tuple[int, int] | None:
    """Where the pattern finds something from `place` on; white space alone is nothing to protect."""
    return next((match.span() for match in pattern.finditer(text, place) if match[0].strip()), None)
