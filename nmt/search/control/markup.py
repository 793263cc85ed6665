"""Tags of XML and HTML: taken out of the text, and put back around the words that come from those they enclosed.

Whatever was translated, every tag stands in the result once, and elements are as well nested as in the source.
Entities are read as the characters they stand for, and &, < and > of the translation are written as entities.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from nmt.corpus.lines import one_line
from nmt.search.control.phrases import is_joined

_TAG = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<![A-Za-z](?:[^<>\"']|\"[^\"]*\"|'[^']*')*>"
    r"|<(/?)([A-Za-z_][\w.:-]*)((?:\s(?:[^<>\"']|\"[^\"]*\"|'[^']*')*)?|/)>"
)
_ENTITY = re.compile(r"&(?:#\d+|#[xX][\dA-Fa-f]+|[A-Za-z][A-Za-z0-9]*);")
# Elements that part words, even where no space stands beside their tags
_APART = frozenset(
    re.findall(
        r"\w+",
        "address article blockquote br caption dd div dl dt figure h1 h2 h3 h4 h5 h6 header hr li main ol option "
        "footer p pre section table tbody td tfoot th thead tr ul",
    )
)
_VOID = frozenset(re.findall(r"\w+", "area base br col embed hr img input link meta param source track wbr"))
_INNER = frozenset("'’.,:·-‑/_@")  # between two letters or digits these belong to a word


_Tag = tuple[str, bool, bool]
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


@dataclass(frozen=True)
class Marked:
    """A line with its tags taken out."""

    text: str
    """What is to be translated: no tags, entities resolved."""
    nodes: list[Node]
    """What stood in it, as a tree."""
    markup: bool = True
    """Whether there was any tag or entity."""

    @cached_property
    def units(self) -> list[tuple[int, int]]:
        """Where the units of the text begin and end: words, signs, and letters of scripts without spaces."""
        return units(self.text)

    def put_back(self, translation: str, pairs: Sequence[tuple[int, int]]) -> str:
        """The translation with all tags; `pairs` tell which unit of the text each of its units comes from."""
        if not self.markup:
            return translation
        spans = units(translation)
        source_of = {j: i for i, j in pairs} | dict(self._same_signs(translation, spans))
        places = _Places(len(spans), source_of)
        places.put(self.nodes, (0, len(spans)), (0, len(self.units)))
        return _woven(translation, spans, places)

    def _same_signs(self, translation: str, spans: Sequence[Area]) -> Iterator[tuple[int, int]]:
        """Signs that both sides have as often come from each other in their order, whatever attention says."""
        signs = [
            [(text[start:end], i) for i, (start, end) in enumerate(places) if not text[start].isalnum()]
            for text, places in ((translation, spans), (self.text, self.units))
        ]
        for sign in {sign for sign, _ in signs[0]}:
            own, theirs = ([i for other, i in side if other == sign] for side in signs)
            if len(own) == len(theirs):
                yield from zip(own, theirs, strict=True)


def plain(line: str) -> str:
    """The text of a line with markup."""
    return take_out(line).text


def take_out(line: str) -> Marked:
    """The line's text and its tags. A line that has neither tag nor entity stays as it is."""
    parts = list(_parts(line))
    if len(parts) == 1 and not _ENTITY.search(line):
        return Marked(line, [], markup=False)
    text = ""
    tags: list[tuple[re.Match[str], int, tuple[bool, bool]]] = []
    for piece, tag in parts:
        read = one_line(_ENTITY.sub(lambda match: html.unescape(match[0]), piece))
        if text.endswith(" ") and tags and tags[-1][1] == len(text) and read[:1] == " ":
            read = read.lstrip(" ")  # two spaces that a tag stood between are one
        text += read
        if tag is not None:
            name = tag[2] or ""
            parting = name.lower() in _APART and text[-1:].strip() and line[tag.end() : tag.end() + 1].strip() != ""
            tags.append((tag, len(text), _spaces(line, tag)))
            text += " " if parting else ""
    spans = units(text)
    return Marked(text, _tree(tags, [start for start, _ in spans], [end for _, end in spans]))


def _parts(line: str) -> Iterator[tuple[str, re.Match[str] | None]]:
    """The text before each tag, with the tag; at last the text after all."""
    place = 0
    for match in _TAG.finditer(line):
        yield line[place : match.start()], match
        place = match.end()
    yield line[place:], None


def _spaces(line: str, tag: re.Match[str]) -> tuple[bool, bool]:
    """Whether white space, or the line's edge, stands before the tag and after it; other tags between don't count."""
    before, after = _TAG.sub("", line[: tag.start()])[-1:], _TAG.sub("", line[tag.end() :])[:1]
    return not before.strip(), not after.strip()


def _tree(
    tags: Sequence[tuple[re.Match[str], int, tuple[bool, bool]]], starts: Sequence[int], ends: Sequence[int]
) -> list[Node]:
    """Tags that belong together as elements, all others alone."""
    partner = _partners([tag for tag, _, _ in tags])
    root = Node("")
    open_ = [root]
    for number, (tag, place, spaces) in enumerate(tags):
        if number in partner and partner[number] < number:
            node = open_.pop()
            node.closing, node.end = tag[0], sum(start < place for start in starts)
            node.inner, node.outer = (node.inner[0], spaces[0]), (node.outer[0], spaces[1])
            continue
        first = sum(end <= place for end in ends)
        node = Node(tag[0], "", first, first, outer=spaces)
        open_[-1].children.append(node)
        if number in partner:
            node.inner, node.outer = (spaces[1], False), (spaces[0], False)
            open_.append(node)
    return root.children


def _partners(tags: Sequence[re.Match[str]]) -> dict[int, int]:
    """Which opening tag belongs to which closing one, and the other way round; elements never cross."""
    partner: dict[int, int] = {}
    open_: list[int] = []
    for number, tag in enumerate(tags):
        if not tag[2] or tag[3].endswith("/") or tag[2].lower() in _VOID:
            continue
        if not tag[1]:
            open_.append(number)
            continue
        fitting = [i for i in open_ if tags[i][2] == tag[2]]
        if fitting:
            partner[number], partner[fitting[-1]] = fitting[-1], number
            open_ = open_[: open_.index(fitting[-1])]
    return partner


def units(text: str) -> list[tuple[int, int]]:
    """Where words, signs, and letters of scripts without spaces begin and end."""
    spans: list[tuple[int, int]] = []
    for place, character in enumerate(text):
        if not character.strip():
            continue
        if spans and spans[-1][1] == place and _goes_on(text, place):
            spans[-1] = spans[-1][0], place + 1
        else:
            spans.append((place, place + 1))
    return spans


def _goes_on(text: str, place: int) -> bool:
    if is_joined(text, place) or _joins(text, place) or _joins(text, place - 1):
        return True
    return unicodedata.category(text[place])[0] == "M" or "\u200d" in text[place - 1 : place + 1]


def _joins(text: str, place: int) -> bool:
    """Whether a sign stands at `place` that belongs to the word around it."""
    return text[place] in _INNER and 0 < place < len(text) - 1 and is_joined(text[place - 1] + text[place + 1], 1)


class _Places:
    """Which tags stand between two units of the translation: those that end what is before, those that begin."""

    def __init__(self, count: int, source_of: dict[int, int]) -> None:
        self.source_of = source_of
        self.ending: list[list[_Tag]] = [[] for _ in range(count + 1)]
        self.beginning: list[list[_Tag]] = [[] for _ in range(count + 1)]

    def put(self, nodes: Sequence[Node], area: Area, source: Area) -> None:
        """Find room for `nodes`, and for what is in them, among the units of `area`, which translates `source`."""
        taken: list[Area] = []
        room: dict[int, Area] = {}
        for number, node in sorted(enumerate(nodes), key=lambda one: one[1].start - one[1].end):  # the longest first
            room[number] = self._around(node, area, taken) or self._beside(node, area, source, taken)
            taken.append(room[number])
        for number in sorted(room, key=lambda number: (*room[number], number)):
            self._stand(nodes[number], room[number], area)

    def _stand(self, node: Node, room: Area, area: Area) -> None:
        first, last = room
        if first == last:  # at the end of what is around it, it belongs before the tag that ends that
            (self.ending if first == area[1] else self.beginning)[first].extend(_flat(node))
            return
        self.beginning[first].append((node.opening, node.outer[0], node.inner[0]))
        self.put(node.children, room, (node.start, node.end))
        self.ending[last].append((node.closing, node.inner[1], node.outer[1]))

    def _around(self, node: Node, area: Area, taken: Sequence[Area]) -> Area | None:
        """From the first to the last of the units that come from the node's, as far as none of them is taken."""
        runs: list[list[int]] = []
        for j in range(*area):
            if not node.start <= self.source_of.get(j, -1) < node.end or any(a <= j < b for a, b in taken):
                continue
            if runs and not any(runs[-1][-1] < a <= j for a, _ in taken):
                runs[-1].append(j)
            else:
                runs.append([j])
        widest = max(runs, key=len, default=[])
        return (widest[0], widest[-1] + 1) if widest and node.closing else None

    def _beside(self, node: Node, area: Area, source: Area, taken: Sequence[Area]) -> Area:
        """The place of what encloses no unit: before what follows it in the source, or behind what precedes it."""
        start, end = area
        ahead = [j for j in range(start, end) if self.source_of.get(j) == node.start]
        behind = [j + 1 for j in range(start, end) if self.source_of.get(j) == node.start - 1]
        place = min(ahead) if ahead else max(behind, default=end)
        if node.start <= source[0] or node.start >= source[1]:
            place = start if node.start <= source[0] < source[1] else end
        place = next((b for a, b in taken if a < place < b), place)
        return place, place


def _flat(node: Node) -> list[_Tag]:
    """The tags of a node without its text."""
    if not node.closing:
        return [(node.opening, *node.outer)]
    inside = [tag for child in node.children for tag in _flat(child)]
    return [(node.opening, node.outer[0], False), *inside, (node.closing, False, node.outer[1])]


def _woven(text: str, spans: Sequence[tuple[int, int]], places: _Places) -> str:
    """The text as XML, with the tags at their places."""
    written, end = [], 0
    for number, (start, after) in enumerate([*spans, (len(text), len(text))]):
        written.append(_between(text[end:start], places.ending[number], places.beginning[number]))
        written.append(html.escape(text[start:after], quote=False))
        end = after
    return "".join(written)


def _between(space: str, ending: Sequence[_Tag], beginning: Sequence[_Tag]) -> str:
    """Tags and the space between two units, which stands where it stood in the source beside such tags."""
    tags = [*ending, *beginning]
    if not tags or not space:
        return "".join(tag for tag, _, _ in tags) + space
    before = [tag[1] for tag in tags] + [True]
    after = [True] + [tag[2] for tag in tags]
    slots = [i for i, both in enumerate(zip(before, after, strict=True)) if all(both)]
    if not slots and not any(_name(tag) in _APART for tag, _, _ in tags):
        slots = [len(ending)]
    texts = [tag for tag, _, _ in tags] + [""]
    return "".join((space if i in slots else "") + tag for i, tag in enumerate(texts))


def _name(tag: str) -> str:
    match = _TAG.fullmatch(tag)
    return (match[2] or "").lower() if match else ""
