"""Small pieces of HTML, and the files that pages are made of. Text becomes markup in `escape` alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape as _escape
from importlib import resources


class Markup(str):
    """Text that is HTML already."""


def escape(value: object) -> Markup:
    """Any value as HTML text; Markup stays as it is."""
    return value if isinstance(value, Markup) else Markup(_escape(str(value)))


def join(parts: Iterable[object], between: str = "") -> Markup:
    """Values one after another, each escaped."""
    return Markup(between.join(escape(part) for part in parts))


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """An element. A trailing underscore of an attribute's name is dropped, others become dashes; None leaves it out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{given}>{join(children)}</{name}>")


def table(heads: Sequence[object], rows: Iterable[Sequence[object]], numeric: Iterable[int] = ()) -> Markup:
    """A table that scrolls by itself where it is too wide; columns in `numeric` are aligned as numbers."""
    right = set(numeric)

    def line(cells: Sequence[object], name: str) -> Markup:
        return tag("tr", *(tag(name, cell, class_="number" if i in right else None) for i, cell in enumerate(cells)))

    body = tag("tbody", *(line(row, "td") for row in rows))
    return tag("div", tag("table", tag("thead", line(heads, "th")), body), class_="wide")


def details(summary: object, *children: object, open_: bool = False) -> Markup:
    """What is shown when asked for."""
    return tag("details", tag("summary", summary), *children, open="" if open_ else None)


def section(title: str, *children: object) -> Markup:
    """A headed part of the page; nothing where it would be empty."""
    return tag("section", tag("h2", title), *children) if any(children) else Markup()


def asset(name: str) -> str:
    """The text of a file in assets/."""
    return resources.files("nmt.analysis").joinpath("assets", name).read_text(encoding="utf-8")


def fill(template: str, **values: str) -> str:
    """`template` with each ``{{name}}`` replaced by its value; values are not looked into."""
    first, *rest = template.split("{{")
    parts = [first]
    for part in rest:
        name, _, text = part.partition("}}")
        parts += [values[name.strip()], text]
    return "".join(parts)
