"""Markup: every tag once, nested as before, and the text that of the translation without tags."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from search.models import sentences

from nmt.search.control.markup import plain, take_out, units
from nmt.search.control.request import Request
from nmt.search.translate import Translator

WORDS = st.sampled_from(
    ["bal", "Kor", "3.5", "don't", "&amp;", "&lt;", "&#233;", "漢字", "e\u0301", "x", ",", ".", "a & b"]
)
ALONE = st.sampled_from(["<br/>", "<br>", '<img src="a>b" alt=\'"\'>', "<!-- <b> -->", "<x:y/>", "<?pi?>"])
NAMES = st.sampled_from(["b", "i", "p", "a", "span"])
SPACE = st.sampled_from(["", " "])


def element(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    attributes = st.sampled_from(["", ' href="x y"', ' t="</b>"'])
    whole = st.tuples(NAMES, attributes, inner).map(lambda t: f"<{t[0]}{t[1]}>{t[2]}</{t[0]}>")
    return st.lists(st.tuples(st.one_of(whole, WORDS, ALONE), SPACE), max_size=4).map(
        lambda parts: "".join(part + space for part, space in parts)
    )


DOCUMENT = st.recursive(WORDS, element, max_leaves=12)
TEXT = st.lists(st.sampled_from(["Bal", "kor", "-", "<", "&", "漢", "das", "."]), max_size=8).map(" ".join)


def tags(line: str) -> list[str]:
    return re.findall(r"<!--.*?-->|<\?.*?\?>|</?[a-zA-Z](?:[^<>\"']|\"[^\"]*\"|'[^']*')*>", line)


def balanced(line: str) -> bool:
    """Whether elements close in the reverse order of opening."""
    open_: list[str] = []
    for tag in tags(line):
        name = re.match(r"</?([\w:.-]+)", tag)
        if name is None or tag.endswith("/>") or name[1] in {"br", "img"}:
            continue
        if not tag.startswith("</"):
            open_.append(name[1])
        elif not open_ or open_.pop() != name[1]:
            return False
    return not open_


def squeezed(text: str) -> str:
    return " ".join(text.split())


@settings(max_examples=300)
@given(source=DOCUMENT, translation=TEXT, seed=st.integers(0, 10**6))
@example(source="<b>bal<br/>kor</b><i></i>", translation="Kor bal", seed=1)
def test_every_tag_comes_back_once_and_well_nested(source: str, translation: str, seed: int) -> None:
    draw, marked = random.Random(seed), take_out(source)
    count, width = len(units(translation)), len(marked.units)
    pairs = [(draw.randrange(width), j) for j in range(count) if width and draw.random() < 0.9]
    written = marked.put_back(translation, pairs)
    if not marked.markup:
        assert (marked.text, written) == (source, translation)
        return
    assert Counter(tags(written)) == Counter(tags(source))
    assert balanced(source) and balanced(written)
    assert squeezed(plain(written)) == squeezed(translation)
    mark = {tag: " " if re.match("</?(br|p)", tag) else "\0" for tag in tags(source)}
    masked = re.sub("|".join(map(re.escape, mark)) or "$", lambda tag: mark.get(tag[0], ""), written)
    assert not re.search(r"[a-zA-Z0-9]\0+[a-zA-Z0-9]", masked)


@settings(max_examples=150)
@given(source=DOCUMENT)
def test_a_text_that_is_its_own_translation_keeps_its_tags_in_their_places(source: str) -> None:
    marked = take_out(source)
    again = marked.put_back(marked.text, [(i, i) for i in range(len(marked.units))])
    assert Counter(tags(again)) == Counter(tags(source))
    assert take_out(again).text.split() == marked.text.split()


@pytest.mark.parametrize(
    ("source", "translation", "order", "expected"),
    [
        ("Click <b>here</b> now.", "Klick hier jetzt.", [0, 1, 2, 3], "Klick <b>hier</b> jetzt."),
        ("Click <b>here</b>.", "Hier klicken.", [1, 0, 2], "<b>Hier</b> klicken."),
        ("A <b>red</b> <i>dog</i>", "Hund rot", [2, 1], "<i>Hund</i> <b>rot</b>"),
        ("<p>a <b>b <i>c</i></b></p>", "C B A", [2, 1, 0], "<p><b><i>C</i> B</b> A</p>"),
        ("one<br/>two", "eins zwei", [0, 1], "eins<br/>zwei"),
        ("one <br/> two", "eins zwei", [0, 1], "eins <br/> zwei"),
        ("un<b>do</b>ing it", "Es rückgängig", [1, 0], "Es <b>rückgängig</b>"),
        ("</b> x <i> y", "X Y", [0, 1], "</b>X <i> Y"),
        ("<b></b>", "", [], "<b></b>"),
        ("x &lt; y &amp; z", "X < Y & Z", [0, 1, 2, 3, 4], "X &lt; Y &amp; Z"),
        ("see <a t='x?a&b'>this, that</a>!", "Sieh da und da!", [0, 1, 2, 3, 4], "Sieh <a t='x?a&b'>da und da</a>!"),
        ("a < b & c", "A < B & C", [0, 1, 2, 3, 4], "A < B & C"),
        ("<b>bal</b> kor", "kor", [1], "<b></b>kor"),
    ],
)  # fmt: skip
def test_tags_stand_around_the_words_that_come_from_theirs(
    source: str, translation: str, order: list[int], expected: str
) -> None:
    assert take_out(source).put_back(translation, [(i, j) for j, i in enumerate(order)]) == expected


def test_words_are_translated_as_without_their_tags(random_translator: Translator) -> None:
    lines = sentences(10, 6, seed=4)
    marked = [re.sub(r"(\w+)$", r"<b>\1</b>", line.replace(" ", " <br/> ", 1)) for line in lines]
    free = list(random_translator.stream(lines, n_best=3))
    found = list(random_translator.stream([Request(line, markup=True) for line in marked], n_best=3))
    for one, other, line in zip(found, free, marked, strict=True):
        assert one.source == line
        texts = ["".join(plain(c.text).split()) for c in one.alternatives]
        assert texts == ["".join(c.text.split()) for c in other.alternatives]
        assert [c.score for c in one.alternatives] == pytest.approx([c.score for c in other.alternatives], abs=1e-4)
        assert all(Counter(tags(c.text)) == Counter(tags(line)) and balanced(c.text) for c in one.alternatives)


def test_lines_without_markup_and_lines_that_do_not_ask_stay_as_they_are(random_translator: Translator) -> None:
    lines = [*sentences(4, 6, seed=5), "bal < kor & dem", "<b>bal</b>", "", "<br/>"]
    free = random_translator.translate(lines)
    mixed = [Request(line, markup=i < 5) for i, line in enumerate(lines)]
    assert random_translator.translate(mixed) == free
    assert random_translator.translate([Request("<br/>", markup=True), Request(" <b> </b>", markup=True)])[0] == "<br/>"
    with_alignment = random_translator.stream([Request("<b>bal</b> kor", markup=True)], alignment=True)
    assert next(with_alignment).best.alignment is not None


def test_a_long_line_keeps_its_tags(random_translator: Translator) -> None:
    line = "<p>" + " ".join(f"<b>{word}</b>" for line in sentences(30, 8, seed=6) for word in line.split()) + "</p>"
    (found,) = random_translator.stream([Request(line, markup=True)])
    assert "split into" in found.cautions[0]
    assert Counter(tags(found.text)) == Counter(tags(line)) and balanced(found.text)


@pytest.mark.parametrize(
    "form",
    ["<b>x</b> ", "<b>", "</b>", "<b>x ", "<i></i>x", "<!--", "<?", "<![CDATA[", "<br/>", '<a "', "<p>x</p><br>"],
)
def test_thousands_of_tags_come_back_once_each_in_time_about_linear_in_them(form: str) -> None:
    count = 1000
    for line in (form * count, form * count + "x" + "</b>" * count):
        marked = take_out(line)
        translation = " ".join(["kor"] * count)
        last = max(len(marked.units) - 1, 0)
        pairs = [(min(j, last), j) for j in range(count)] if marked.units else []
        found = marked.put_back(translation, pairs)
        assert tags(found) == tags(line) if balanced(line) else Counter(tags(found)) == Counter(tags(line))


@settings(max_examples=50)
@given(
    line=st.lists(st.sampled_from(["<!--", "-->", "<?", "?>", "<![CDATA[", "]]>", "\n", "x", "<b>", " "])).map("".join)
)
def test_what_does_not_end_is_text(line: str) -> None:
    pattern = r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<b>"
    assert sorted(tag for node in take_out(line).nodes for tag in [node.opening]) == sorted(re.findall(pattern, line))
