"""A table as text, Markdown or LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

_NUMERIC = re.compile(r"[-+]?[\d,]+(\.\d+)?%?( .*)?|-|")
_LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "±": r"$\pm$", "μ": r"$\mu$", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """Rows under a head, with a title (perhaps empty) and notes below. Cells are plain text."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def right(self) -> list[bool]:
        """For each column whether it holds numbers, which stand at the right."""
        columns = zip(*self.rows, strict=True) if self.rows else ((),) * len(self.head)
        return [all(_NUMERIC.fullmatch(cell) for cell in column) for column in columns]


def as_text(table: Table) -> Iterator[str]:
    """Aligned columns, two spaces between them."""
    yield from [table.title] if table.title else []
    rows = [table.head, *table.rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(table.head))]
    right = table.right()
    for row in rows:
        cells = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True))
        yield "  ".join(cells).rstrip()
    yield from table.notes


def as_markdown(table: Table) -> Iterator[str]:
    """A pipe table; the title is a bold line, each note a list item."""
    if table.title:
        yield from (f"**{table.title}**", "")
    yield _piped(table.head)
    yield _piped(["--:" if right else ":--" for right in table.right()])
    for row in table.rows:
        yield _piped([cell.replace("|", "\\|") for cell in row])
    if table.notes:
        yield ""
        yield from (f"- {note}" for note in table.notes)


def as_latex(table: Table) -> Iterator[str]:
    """A tabular with booktabs' rules; title and notes are comments, so that it can stand in any document."""
    yield from (f"% {line}" for line in (table.title, *table.notes) if line)
    yield rf"\begin{{tabular}}{{{''.join('r' if right else 'l' for right in table.right())}}}"
    yield r"\toprule"
    yield _ampersands(table.head)
    yield r"\midrule"
    yield from (_ampersands(row) for row in table.rows)
    yield r"\bottomrule"
    yield r"\end{tabular}"


FORMATS: dict[str, Callable[[Table], Iterator[str]]] = {"text": as_text, "markdown": as_markdown, "latex": as_latex}


def _piped(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _ampersands(cells: Sequence[str]) -> str:
    return " & ".join("".join(_LATEX.get(c, c) for c in cell) for cell in cells) + r" \\"
