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
            except re.error as error:
                raise NmtError(
                    f"the pattern {pattern!r} is no regular expression: {error}", "a backslash takes a sign for itself"
                ) from error
        chosen = [*patterns, *(pattern for kind, pattern in PATTERNS.items() if kind in kinds)]
        self._pattern = re.compile("|".join(f"(?:{pattern})" for pattern in chosen) or r"(?!)")

    def find(self, text: str) -> list[str]:
        """The protected spans of `text`, from left to right."""
        return [match[0] for match in self._pattern.finditer(text) if match[0].strip()]
