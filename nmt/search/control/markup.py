"""Tags of XML and HTML: taken out of the text, and put back around the words that come from those they enclosed.

Whatever was translated, every tag stands in the result once, and elements are as well nested as in the source.
Entities are read as the characters they stand for, and &, < and > of the translation are written as entities.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from nmt.corpus.lines import one_line
from nmt.search.control.phrases import is_joined
from nmt.search.control.weave import APART, Area, Node, Places, woven

_TAG = re.compile(
    r"(<!--|<!\[CDATA\[|<\?)|<![A-Za-z](?:[^<>\"']|\"[^\"]*\"|'[^']*')*>"
    r"|<(/?)([A-Za-z_][\w.:-]*)((?:\s(?:[^<>\"']|\"[^\"]*\"|'[^']*')*)?|/)>"
)
_CLOSING = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}  # what ends that which may hold anything
_ENTITY = re.compile(r"&(?:#\d+|#[xX][\dA-Fa-f]+|[A-Za-z][A-Za-z0-9]*);")
_VOID = frozenset(re.findall(r"\w+", "area base br col embed hr img input link meta param source track wbr"))
_INNER = frozenset("'’.,:·-‑/_@")  # between two letters or digits these belong to a word


@dataclass(frozen=True)
class _Tag:
    """A tag of a line, from `start` to before `end`."""

    text: str
    start: int
    end: int
    name: str = ""
    """Empty for what is no part of an element: comments and the like."""
    closes: bool = False
    alone: bool = False
    """Whether it ends itself."""


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
        places = Places(len(spans), source_of)
        places.put(self.nodes, (0, len(spans)), (0, len(self.units)))
        return woven(translation, spans, places)

    def _same_signs(self, translation: str, spans: Sequence[Area]) -> Iterator[tuple[int, int]]:
        """Signs that both sides have as often come from each other in their order, whatever attention says."""
        own, theirs = _signs(translation, spans), _signs(self.text, self.units)
        for sign in own.keys() & theirs.keys():
            if len(own[sign]) == len(theirs[sign]):
                yield from zip(own[sign], theirs[sign], strict=True)


def _signs(text: str, spans: Sequence[Area]) -> dict[str, list[int]]:
    """The units that are no words, by what they are."""
    signs = defaultdict(list)
    for number, (start, end) in enumerate(spans):
        if not text[start].isalnum():
            signs[text[start:end]].append(number)
    return signs


def plain(line: str) -> str:
    """The text of a line with markup."""
    return take_out(line).text


def take_out(line: str) -> Marked:
    """The line's text and its tags. A line that has neither tag nor entity stays as it is."""
    parts = list(_parts(line))
    if len(parts) == 1 and not _ENTITY.search(line):
        return Marked(line, [], markup=False)
    text = ""
    tags: list[tuple[_Tag, int, tuple[bool, bool]]] = []
    spaces = _spaces([piece for piece, _ in parts])
    for (piece, tag), beside in zip(parts, spaces, strict=True):
        read = one_line(_ENTITY.sub(lambda match: html.unescape(match[0]), piece))
        if text.endswith(" ") and tags and tags[-1][1] == len(text) and read[:1] == " ":
            read = read.lstrip(" ")  # two spaces that a tag stood between are one
        text += read
        if tag is not None:
            parting = tag.name.lower() in APART and text[-1:].strip() and line[tag.end : tag.end + 1].strip() != ""
            tags.append((tag, len(text), beside))
            text += " " if parting else ""
    spans = units(text)
    return Marked(text, _tree(tags, [start for start, _ in spans], [end for _, end in spans]))


def _parts(line: str) -> Iterator[tuple[str, _Tag | None]]:
    """The text before each tag, with the tag; at last the text after all."""
    place = 0
    for tag in _tags(line):
        yield line[place : tag.start], tag
        place = tag.end
    yield line[place:], None


def _tags(line: str) -> Iterator[_Tag]:
    """The tags from left to right. A comment that does not end within its line is none."""
    place = 0
    ahead = dict.fromkeys([*_CLOSING.values(), "\n"], 0)  # where each stands next, lest every tag search the whole line

    def following(text: str, place: int) -> int:
        if 0 <= ahead[text] < place:
            ahead[text] = line.find(text, place)
        return ahead[text]

    while match := _TAG.search(line, place):
        start, place = match.span()
        if closing := _CLOSING.get(match[1] or ""):
            end = following(closing, place)
            if end < 0 or 0 <= following("\n", place) < end:
                continue
            place = end + len(closing)
        name = match[3] or ""
        yield _Tag(line[start:place], start, place, name, bool(match[2]), (match[4] or "").endswith("/"))


def _spaces(pieces: Sequence[str]) -> Iterator[tuple[bool, bool]]:
    """Between the texts, whether white space, or the line's edge, stands before and after; nothing counts for nothing.

    One more for the end.
    """

    def nearer(last: str, new: str) -> str:
        return new or last

    before = accumulate((piece[-1:] for piece in pieces), nearer)
    after = list(accumulate((piece[:1] for piece in reversed(pieces)), nearer))[-2::-1]
    for last, first in zip(before, [*after, ""], strict=True):
        yield not last.strip(), not first.strip()


def _tree(
    tags: Sequence[tuple[_Tag, int, tuple[bool, bool]]], starts: Sequence[int], ends: Sequence[int]
) -> list[Node]:
    """Tags that belong together as elements, all others alone."""
    partner = _partners([tag for tag, _, _ in tags])
    root = Node("")
    open_ = [root]
    for number, (tag, place, spaces) in enumerate(tags):
        if number in partner and partner[number] < number:
            node = open_.pop()
            node.closing, node.end = tag.text, bisect_left(starts, place)
            node.inner, node.outer = (node.inner[0], spaces[0]), (node.outer[0], spaces[1])
            continue
        first = bisect_right(ends, place)
        node = Node(tag.text, "", first, first, outer=spaces)
        open_[-1].children.append(node)
        if number in partner:
            node.inner, node.outer = (spaces[1], False), (spaces[0], False)
            open_.append(node)
    return root.children


def _partners(tags: Sequence[_Tag]) -> dict[int, int]:
    """Which opening tag belongs to which closing one, and the other way round; elements never cross."""
    partner: dict[int, int] = {}
    open_: list[int] = []
    named: dict[str, list[int]] = defaultdict(list)
    for number, tag in enumerate(tags):
        if not tag.name or tag.alone or tag.name.lower() in _VOID:
            continue
        if not tag.closes:
            open_.append(number)
            named[tag.name].append(number)
        elif named[tag.name]:
            fitting = named[tag.name][-1]
            partner[number], partner[fitting] = fitting, number
            while open_ and open_[-1] >= fitting:  # what was opened since then and is open still stays alone
                named[tags[open_.pop()].name].pop()
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
