"""Where tags go in a translation: around the units that come from those they enclosed, and where they stood beside."""

from __future__ import annotations

import html
import re
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

# Elements that part words, even where no space stands beside their tags
APART = frozenset(
    re.findall(
        r"\w+",
        "address article blockquote br caption dd div dl dt figure h1 h2 h3 h4 h5 h6 header hr li main ol option "
        "footer p pre section table tbody td tfoot th thead tr ul",
    )
)
_NAME = re.compile(r"</?([A-Za-z_][\w.:-]*)")

Tag = tuple[str, bool, bool]
"""With whether a space stood before it and behind it."""
Area = tuple[int, int]
"""Units, from the first to before the last."""


@dataclass
class Node:
    """A tag that stands alone, or an element: two tags and what they enclose. Places count units of the text."""

    opening: str
    closing: str = ""
    start: int = 0
    end: int = 0
    children: list[Node] = field(default_factory=list)
    inner: tuple[bool, bool] = (False, False)
    """Whether a space follows the opening tag and one precedes the closing."""
    outer: tuple[bool, bool] = (True, True)
    """Whether a space precedes the opening tag and one follows the closing."""


class Places:
    """Which tags stand between two units of the translation: those that end what is before, those that begin."""

    def __init__(self, count: int, source_of: dict[int, int]) -> None:
        self.source_of = source_of
        self.units_of: dict[int, list[int]] = defaultdict(list)
        for j in sorted(source_of):
            self.units_of[source_of[j]].append(j)
        self.ending: list[list[Tag]] = [[] for _ in range(count + 1)]
        self.beginning: list[list[Tag]] = [[] for _ in range(count + 1)]

    def put(self, nodes: Sequence[Node], area: Area, source: Area) -> None:
        """Find room for `nodes`, and for what is in them, among the units of `area`, which translates `source`."""
        waiting = [self._putting(nodes, area, source)]  # a stack of our own: elements may be nested thousands deep
        while waiting:
            if inside := next(waiting[-1], None):
                waiting.append(self._putting(*inside))
            else:
                waiting.pop()

    def _putting(self, nodes: Sequence[Node], area: Area, source: Area) -> Iterator[tuple[Sequence[Node], Area, Area]]:
        """Put the tags of `nodes`; between the two of each, give what is to be put inside."""
        taken = _Taken(area, self.units_of)
        room: dict[int, Area] = {}
        for number, node in sorted(enumerate(nodes), key=lambda one: one[1].start - one[1].end):  # the longest first
            around = self._around(node, area, taken) if node.closing else None
            room[number] = around or self._beside(node, area, source, taken)
            taken.add(room[number])
        for number in sorted(room, key=lambda number: (*room[number], number)):
            node, (first, last) = nodes[number], room[number]
            if first == last:  # at the end of what is around it, it belongs before the tag that ends that
                (self.ending if first == area[1] else self.beginning)[first].extend(_flat(node))
                continue
            self.beginning[first].append((node.opening, node.outer[0], node.inner[0]))
            if node.children:
                yield node.children, room[number], (node.start, node.end)
            self.ending[last].append((node.closing, node.inner[1], node.outer[1]))

    def _around(self, node: Node, area: Area, taken: _Taken) -> Area | None:
        """From the first to the last of the units that come from the node's, as far as none of them is taken."""
        if not taken.areas:
            return self._shrunk(node, area)
        runs: list[list[int]] = []
        for j in sorted(j for i in range(node.start, node.end) for j in taken.free(i)):
            if runs and not taken.begins(runs[-1][-1] + 1, j + 1):
                runs[-1].append(j)
            else:
                runs.append([j])
        widest = max(runs, key=len, default=[])
        return (widest[0], widest[-1] + 1) if widest else None

    def _shrunk(self, node: Node, area: Area) -> Area | None:
        """The area without the units at its edges that don't come from the node's.

        What is left out is not looked at again within the node, so thousands that are nested take no longer than one.
        """
        first, last = area
        while first < last and not node.start <= self.source_of.get(first, -1) < node.end:
            first += 1
        while first < last and not node.start <= self.source_of.get(last - 1, -1) < node.end:
            last -= 1
        return (first, last) if first < last else None

    def _beside(self, node: Node, area: Area, source: Area, taken: _Taken) -> Area:
        """The place of what encloses no unit: before what follows it in the source, or behind what precedes it."""
        start, end = area
        ahead, behind = (self.units_of.get(i, []) for i in (node.start, node.start - 1))
        next_, last = bisect_left(ahead, start), bisect_left(behind, end) - 1
        if node.start <= source[0] or node.start >= source[1]:
            place = start if node.start <= source[0] < source[1] else end
        elif next_ < len(ahead) and ahead[next_] < end:
            place = ahead[next_]
        else:
            place = behind[last] + 1 if last >= 0 and behind[last] >= start else end
        place = taken.end_around(place)
        return place, place


class _Taken:
    """Areas within one around them that do not overlap, in order; some are empty."""

    def __init__(self, area: Area, units_of: Mapping[int, list[int]]) -> None:
        self.areas: list[Area] = []
        self.around, self.units_of = area, units_of
        self.left: dict[int, list[int]] = {}

    def add(self, area: Area) -> None:
        """Take an area that overlaps none."""
        insort(self.areas, area)

    def free(self, unit: int) -> list[int]:
        """Of the units that come from that one of the source, those that none has."""
        if unit not in self.left:
            units = self.units_of.get(unit, [])
            self.left[unit] = units[slice(*(bisect_left(units, edge) for edge in self.around))]
        self.left[unit] = [j for j in self.left[unit] if not self._holds(j)]
        return self.left[unit]

    def _holds(self, unit: int) -> bool:
        last = bisect_left(self.areas, (unit + 1, 0)) - 1
        return last >= 0 and unit < self.areas[last][1]

    def end_around(self, place: int) -> int:
        """The end of the one that lies on both sides of `place`, or else `place`."""
        last = bisect_left(self.areas, (place, 0)) - 1
        return max(place, self.areas[last][1]) if last >= 0 else place

    def begins(self, start: int, end: int) -> bool:
        """Whether one of them begins from `start` to before `end`."""
        return bisect_left(self.areas, (start, 0)) < bisect_left(self.areas, (end, 0))


def _flat(node: Node) -> list[Tag]:
    """The tags of a node without its text."""
    tags: list[Tag] = []
    waiting: list[Node | Tag] = [node]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, Node):
            tags.append(one)
        elif not one.closing:
            tags.append((one.opening, *one.outer))
        else:
            tags.append((one.opening, one.outer[0], False))
            waiting.append((one.closing, False, one.outer[1]))
            waiting.extend(reversed(one.children))
    return tags


def woven(text: str, spans: Sequence[tuple[int, int]], places: Places) -> str:
    """The text as XML, with the tags at their places."""
    written, end = [], 0
    for number, (start, after) in enumerate([*spans, (len(text), len(text))]):
        written.append(_between(text[end:start], places.ending[number], places.beginning[number]))
        written.append(html.escape(text[start:after], quote=False))
        end = after
    return "".join(written)


def _between(space: str, ending: Sequence[Tag], beginning: Sequence[Tag]) -> str:
    """Tags and the space between two units, which stands where it stood in the source beside such tags."""
    tags = [*ending, *beginning]
    if not tags or not space:
        return "".join(tag for tag, _, _ in tags) + space
    before = [tag[1] for tag in tags] + [True]
    after = [True] + [tag[2] for tag in tags]
    slots = {i for i, both in enumerate(zip(before, after, strict=True)) if all(both)}
    if not slots and not any(_name(tag) in APART for tag, _, _ in tags):
        slots = {len(ending)}
    texts = [tag for tag, _, _ in tags] + [""]
    return "".join((space if i in slots else "") + tag for i, tag in enumerate(texts))


def _name(tag: str) -> str:
    match = _NAME.match(tag)
    return match[1].lower() if match else ""
