"""The parts of a report: charts, differences, scores by length."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.analysis.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Series, chart
from nmt.analysis.differences import marked, nearest, split
from nmt.analysis.lengths import FEWEST, buckets, corpus_score
from nmt.analysis.markup import Markup, escape, tag
from nmt.analysis.record import Line
from nmt.score.config import BleuConfig

NUMBERS = st.floats(-1e9, 1e9, allow_nan=False)


@settings(max_examples=100)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=20))
def test_every_point_lies_inside_the_frame(points: list[tuple[float, float]]) -> None:
    html = chart("a", [Series("b", points)])
    for place in re.search(r'<polyline points="([^"]*)"', html)[1].split():
        x, y = map(float, place.split(","))
        assert LEFT - 0.1 <= x <= WIDTH - RIGHT + 0.1 and TOP - 0.1 <= y <= HEIGHT - BOTTOM + 0.1


def test_a_chart_places_points_by_its_marks() -> None:
    html = chart("loss", [Series("run", [(0.0, 0.0), (50.0, 5.0), (100.0, 10.0)])])
    points = [tuple(map(float, p.split(","))) for p in re.search(r'points="([^"]*)"', html)[1].split()]
    assert points == [(LEFT, HEIGHT - BOTTOM), ((LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2)] + [
        (WIDTH - RIGHT, TOP)
    ]
    marks = re.findall(r"<text[^>]*>([^<]*)</text>", html)
    assert marks == ["0", "2", "4", "6", "8", "10", "0", "20", "40", "60", "80", "100", "updates"]


def test_too_few_points_give_no_chart() -> None:
    assert chart("a", []) == chart("a", [Series("b", [(1.0, 2.0), (2.0, float("nan"))])]) == ""


def test_long_lines_are_thinned_to_means() -> None:
    html = chart("a", [Series("b", [(float(i), float(i % 2)) for i in range(3000)], faint=True)])
    assert len(re.search(r'points="([^"]*)"', html)[1].split()) <= 300


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ("Der Hund.", "Der Hund.", ("Der Hund.", "Der Hund.")),
        (
            "Der große Hund schläft.",
            "Der Hund schlief.",
            (
                'Der <mark class="extra">große</mark> Hund <mark class="extra">schläft</mark>.',
                'Der Hund <mark class="missed">schlief</mark>.',
            ),
        ),
        ("", "a & b", ("", '<mark class="missed">a &amp; b</mark>')),
    ],
)
def test_words_that_differ_are_marked(ours: str, theirs: str, expected: tuple[str, str]) -> None:
    assert marked(ours, theirs, "de") == expected


def test_text_without_spaces_is_compared_by_characters() -> None:
    assert marked("我爱狗", "我爱猫", "zh")[0] == '我爱<mark class="extra">狗</mark>'
    assert len(split("我爱 NMT 2", "zh")) == 4


def test_the_nearest_reference_is_chosen() -> None:
    assert nearest("the big dog", ["a cat", "the dog", "the big cat sleeps"], "en") == "the dog"


@given(st.lists(st.integers(1, 40), min_size=1, max_size=120))
@settings(max_examples=50)
def test_buckets_hold_every_line_once_and_in_order(lengths: list[int]) -> None:
    lines = [Line(i, "w " * n, "a b c d", ("a b c d",)) for i, n in enumerate(lengths, 1)]
    found = buckets(lines, "en", BleuConfig().build("de"))
    assert sum(bucket.lines for bucket in found) == len(lines)
    assert all(one.longest < other.shortest for one, other in zip(found, found[1:], strict=False))
    assert found[0].shortest == min(lengths) and found[-1].longest == max(lengths)
    assert len(found) == 1 or min(bucket.lines for bucket in found) >= FEWEST
    assert len(found) <= 6


def test_a_bucket_is_scored_as_a_set_of_its_own() -> None:
    metric = BleuConfig().build("de")
    good = [Line(i, "a b", "x y z v w", ("x y z v w",)) for i in range(1, 21)]
    bad = [Line(i, "a b c d", "x y z v w", ("x y z v u",)) for i in range(21, 41)]
    found = buckets(good + bad, "en", metric)
    assert [(b.shortest, b.lines) for b in found] == [(2, 20), (4, 20)]
    assert found[0].score.value == pytest.approx(100) and found[1].score == corpus_score(bad, metric)


def test_only_markup_escapes_escaping() -> None:
    assert tag("p", "<a>", Markup("<b></b>"), title='"') == '<p title="&quot;">&lt;a&gt;<b></b></p>'
    assert escape(3) == "3"


@pytest.mark.parametrize("faint", [True, False])
@pytest.mark.parametrize("dashed", [True, False])
@pytest.mark.parametrize("count", [5, 200])
def test_a_legend_shows_lines_as_they_are_drawn(faint: bool, dashed: bool, count: int) -> None:
    html = chart("a", [Series("b", [(float(i), float(i)) for i in range(count)], 1, faint, dashed)])
    drawing, legend = html.split('<p class="legend">')
    (line,) = re.findall(r"<polyline[^>]*?( class=[^>]*)>", drawing)
    (swatch,) = re.findall(r"<line[^>]*?( class=[^>]*)>", legend)
    assert swatch.rstrip("/") == line.rstrip("/")
    assert ("<circle" in legend) == ("<circle" in drawing)
