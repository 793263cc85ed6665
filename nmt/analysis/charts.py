"""Line charts as inline SVG, in the colours of the page, so that they follow its light and dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nmt.analysis.markup import Markup, join, tag

WIDTH, HEIGHT = 440, 260
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 12, 34
MOST_POINTS, MOST_MARKS = 300, 60
DASHES = (None, "7 3", "2 3", "9 3 2 3", "4 2", "1 4")  # lines are told apart without their colours too
Point = tuple[float, float]


@dataclass(frozen=True)
class Series:
    """One line: where several have the same `style`, they are of one run."""

    name: str
    points: Sequence[Point]
    style: int = 0
    faint: bool = False
    """Thin, and without marks."""
    dashed: bool = True
    """With its style's dashes, which tell lines apart without their colours."""

    @property
    def look(self) -> str:
        """The classes of what is drawn of it."""
        return f"run{self.style % len(DASHES)}" + (" faint" if self.faint else "")

    @property
    def dashes(self) -> str | None:
        """Its pattern of dashes; none is a whole line."""
        return DASHES[self.style % len(DASHES)] if self.dashed else None

    @property
    def marked(self) -> bool:
        """Whether its points are marked."""
        return not self.faint and len(_finite(self.points)) <= MOST_MARKS


def chart(title: str, series: Iterable[Series], x_name: str = "updates") -> Markup:
    """A chart with its legend; nothing where no line has two finite points."""
    kept = [(one, _finite(one.points)) for one in series]
    kept = [(one, points) for one, points in kept if len(points) > 1]
    if not kept:
        return Markup()
    xs = _axis([0.0, *(x for _, points in kept for x, _ in points)])
    ys = _axis([y for _, points in kept for _, y in points])
    drawing = tag(
        "svg",
        *_frame(xs, ys, x_name),
        *(_line(one, points, xs, ys) for one, points in kept),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=f"{title} over {x_name}",
    )
    legend = tag("p", *(_entry(one) for one, _ in kept), class_="legend")
    return tag("figure", tag("figcaption", title), drawing, legend)


@dataclass(frozen=True)
class Axis:
    """A range of values and where its marks are."""

    low: float
    high: float
    marks: tuple[float, ...]

    def place(self, value: float, start: float, end: float) -> float:
        """Where between `start` and `end` the value stands."""
        return start + (value - self.low) / (self.high - self.low) * (end - start)


def _axis(values: Sequence[float]) -> Axis:
    """An axis with about five marks at round numbers."""
    low, high = min(values), max(values)
    if high - low < 1e-12 * max(abs(high), 1.0):
        low, high = low - 0.5, high + 0.5
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough)
    first, last = math.floor(low / step), math.ceil(high / step)
    marks = tuple(i * step for i in range(first, last + 1))
    return Axis(marks[0], marks[-1], marks)


def _frame(xs: Axis, ys: Axis, x_name: str) -> Iterable[Markup]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for mark in ys.marks:
        y = round(ys.place(mark, bottom, TOP), 1)
        yield tag("line", x1=LEFT, x2=right, y1=y, y2=y, class_="grid")
        yield tag("text", _short(mark), x=LEFT - 6, y=y + 3.5, text_anchor="end")
    for mark in xs.marks:
        x = round(xs.place(mark, LEFT, right), 1)
        yield tag("line", x1=x, x2=x, y1=bottom, y2=bottom + 4, class_="tick")
        yield tag("text", _short(mark), x=x, y=bottom + 15, text_anchor="end" if mark == xs.marks[-1] else "middle")
    yield tag("text", x_name, x=(LEFT + right) / 2, y=HEIGHT - 5, text_anchor="middle", class_="name")


def _line(one: Series, points: Sequence[Point], xs: Axis, ys: Axis) -> Markup:
    shown = thinned(points)
    places = [(xs.place(x, LEFT, WIDTH - RIGHT), ys.place(y, HEIGHT - BOTTOM, TOP)) for x, y in shown]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    parts = [tag("polyline", points=path, class_=one.look, stroke_dasharray=one.dashes)]
    if one.marked:
        for (x, y), (px, py) in zip(shown, places, strict=True):
            about = tag("title", f"{one.name}: {y:.4g} at {x:,.0f}")
            parts.append(tag("circle", about, cx=f"{px:.1f}", cy=f"{py:.1f}", r=3, class_=one.look))
    return join(parts)


def _entry(one: Series) -> Markup:
    """The line as it is drawn above, with a mark where it has marks, and its name."""
    stroke = tag("line", x1=0, x2=26, y1=5, y2=5, class_=one.look, stroke_dasharray=one.dashes)
    mark = tag("circle", cx=13, cy=5, r=3, class_=one.look) if one.marked else Markup()
    return tag("span", tag("svg", stroke, mark, viewBox="0 0 26 10", class_="sample", aria_hidden="true"), one.name)


def thinned(points: Sequence[Point]) -> list[Point]:
    """At most MOST_POINTS points: means of as many neighbours as it takes."""
    width = math.ceil(len(points) / MOST_POINTS)
    chunks = (points[i : i + width] for i in range(0, len(points), width))
    return [(chunk[-1][0], sum(y for _, y in chunk) / len(chunk)) for chunk in chunks]


def points_of(entries: Sequence[Mapping[str, Any]], key: str) -> list[Point]:
    """What a journal's entries say of `key`, over updates."""
    return [(entry["step"], entry[key]) for entry in entries if entry.get(key) is not None and entry.get("step")]


def _finite(points: Sequence[Point]) -> list[Point]:
    return [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]


def _short(value: float) -> str:
    if abs(value) >= 10_000:
        return f"{value / 1000:g}k"
    return f"{value:.4g}" if value == 0 or abs(value) >= 1e-4 else f"{value:.0e}".replace("e-0", "e-")
