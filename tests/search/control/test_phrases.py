"""Phrases, glossaries and protected spans in text."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt.errors import NmtError
from nmt.search.control.glossary import Glossary
from nmt.search.control.phrases import occurrences
from nmt.search.control.protect import PATTERNS, Protector
from nmt.search.control.wishes import Wishes


@pytest.mark.parametrize(
    ("phrase", "text", "count"),
    [
        ("Haus", "Haus", 1),
        ("Haus", "Das Haus. Ein Haus, (Haus)", 3),
        ("Haus", "Krankenhaus Hauses Haus_ HausHaus", 0),
        ("5", "15 5.5 5", 3),  # a phrase knows words; what a number is, the protector knows
        ("{0}", "a{0}b {0}", 2),
        ("中文", "我说中文吗", 1),
        ("क", "कि क", 1),
        ("cafe", "cafe\u0301", 0),
        ("aa", "aa aa aa", 3),
        ("a a", "a a a", 1),
        ("x", "", 0),
    ],
)
def test_a_phrase_stands_where_no_word_reaches_over_its_edges(phrase: str, text: str, count: int) -> None:
    assert occurrences(phrase, text) == count


def test_the_longest_terms_of_a_glossary_win_and_none_overlap(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("file\tDatei\nfile system\tDateisystem\n\nsystem\tSystem\n C++ \t C++ \n", encoding="utf-8")
    glossary = Glossary.read(path)
    assert glossary.wanted("A file system has a file.") == ["Dateisystem", "Datei"]
    assert glossary.wanted("profile files systems File") == []
    assert glossary.wanted("C++ system") == ["C++", "System"]


@pytest.mark.parametrize("line", ["file", "file\t", "\tDatei", "file\tDatei\tAkte", "file\tAkte"])
def test_a_bad_glossary_is_named_by_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(f"file\tDatei\n{line}\n", encoding="utf-8")
    with pytest.raises(NmtError) as caught:
        Glossary.read(path)
    assert f"{path}:2: " in caught.value.problem


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("See https://a.org/b?c=1&d=(2), or www.x.de.", ["https://a.org/b?c=1&d=(2", "www.x.de"]),
        ("Write to first.last+x@mail.example.co.uk!", ["first.last+x@mail.example.co.uk"]),
        ("1,000.50 at 12:30 on 24.12.2024, 3rd or x86", ["1,000.50", "12:30", "24.12.2024"]),
        ("{0} {} {name} {{x}} ${y}", ["{0}", "{}", "{name}", "{{x}}", "${y}"]),
        ("%s %1$d %(name)s %05.2f %ds", ["%s", "%1$d", "%(name)s", "%05.2f", "%d"]),
        ("100%sure or 5 % of it", ["100", "5"]),
        ("__VAR__ and snake_case", ["__VAR__"]),
        ("Nothing here.", []),
    ],
)
def test_protected_kinds_are_found(text: str, spans: list[str]) -> None:
    assert Protector(list(PATTERNS)).find(text) == spans


def test_own_patterns_come_first_and_bad_ones_are_named() -> None:
    assert Protector(["number"], [r"<[^>]+>", r"ACME \d+"]).find("<b1> ACME 77 12") == ["<b1>", "ACME 77", "12"]
    with pytest.raises(NmtError, match="'\\['"):
        Protector([], ["["])
    with pytest.raises(NmtError, match="uri"):
        Protector(["uri"])


def test_problems_are_named_with_their_counts() -> None:
    wishes = Wishes(("Haus", "an", "an"), ("Auto",), "5 {0} {0}", Protector(["number", "placeholder"]))
    assert wishes.phrases() == ["Haus", "an", "an", "5", "{0}", "{0}"]
    assert wishes.problems("Haus an an 5 {0} {0}") == []
    assert wishes.problems("Auto an {0} 5 5 9") == [
        "'Haus' is missing",
        "'an' stands there fewer than 2 times",
        "'Auto' stands there",
        "'5' stands there twice, in the source once",
        "'{0}' stands there once, in the source twice",
    ]
    assert not Wishes(source="no number", protector=Protector(["number"]))


@pytest.mark.parametrize(
    ("patterns", "text", "spans"),
    [
        (["(?i)foo", "bar"], "Foo BAR bar", ["Foo", "bar"]),  # flags are one pattern's own,
        (["(?P<a>x)", "(?P<a>y)(?P=a)"], "x y yy", ["x", "yy"]),  # and so are names
        (["(x)", r"(o)\1"], "o oo x", ["oo", "x"]),  # and numbers of groups
        (["a|b", "bc"], "bc abc", ["b", "a", "b"]),  # of two that begin together, the first
        (["bc", "abc", r"\d"], "abcbc1", ["abc", "bc", "1"]),  # the leftmost, whatever its rank, and none overlap
        (["x*", r"\s*", "y"], "yxx xy", ["y", "xx", "x", "y"]),  # nothing, and white space alone, are nothing
    ],
)
def test_each_pattern_finds_what_it_would_alone(patterns: list[str], text: str, spans: list[str]) -> None:
    assert Protector([], patterns).find(text) == spans


@pytest.mark.parametrize("pattern", ["(?P<a", "x(?i)", "a{9999999999999999999}", "(?P=a)(?P<a>x)", r"\1"])
def test_a_pattern_that_is_none_is_named_whatever_stands_beside_it(pattern: str) -> None:
    for patterns in ([pattern], ["(?P<a>x)(y)", pattern]):
        with pytest.raises(NmtError, match="no regular expression") as caught:
            Protector(["url"], patterns)
        assert repr(pattern) in caught.value.problem
