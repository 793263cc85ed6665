"""Checks of single lines: what they find, and what they leave alone."""

from __future__ import annotations

import pytest

from nmt.score.faults import CHECKS, find, summary
from nmt.score.texts import Texts

REFERENCE = "Ein gewöhnlicher Satz, der lang genug ist."
SOURCE = "An ordinary sentence that is long enough."


def found(text: str, source: str | None = SOURCE, reference: str = REFERENCE) -> dict[str, str]:
    sources = None if source is None else [source]
    given = Texts(("a",), ([text],), ("r",), ([reference],), sources)
    return {finding.check: finding.detail for finding in find(given)}


@pytest.mark.parametrize(
    ("check", "source", "text", "detail"),
    [
        ("number", "It costs 1,000.50 euros.", "Es kostet 1.000,60 Euro.", "lacks 50; has 60"),
        ("number", "Page 3 of 7", "Seite 3", "lacks 7"),
        ("number", "Room 12", "Raum 12 12", "has 12"),
        ("link", "See https://example.org/a now.", "Siehe https://example.org/b jetzt.", "lacks https://example.org/a"),
        ("link", "Write to me@example.org.", "Schreib an ich@example.org.", "has ich@example.org"),
        ("placeholder", "Copied {0} of {1} files", "{0} Dateien kopiert", "lacks {1}"),
        ("placeholder", "Open %1$s", "%s öffnen", "lacks %1$s; has %s"),
        ("placeholder", "Press <b>OK</b>", "<b>OK drücken", "lacks </b>"),
        ("placeholder", "About &brandName;", "Über &marke;", "lacks &brandName;"),
        ("copied", "The old harbour is quiet.", "The old harbour ist quiet.", "80%"),
        ("copied", "他们明天去上海开会，然后回北京。", "他们明天去上海开会，然后回北京。", "100%"),
        ("loop", "A very long story", "Eine sehr sehr sehr lange Geschichte", "3 times 'sehr'"),
        ("loop", "I see it.", "Ich sehe es und sehe es und sehe es und", "3 times 'sehe es und'"),
        ("loop", "Remove spaces.", "Dadadrrrrung der Lücken", "4 times 'r'"),
        ("loop", "我看见它。", "我看见它我看见它我看见它。", "3 times '我看见它'"),
        ("mark", "A ship", "Ein Sch@@ iff", "@@"),
        ("mark", "A ship", "Ein \ufffd Schiff", "U+FFFD"),
    ],
)  # fmt: skip
def test_a_fault_is_found_and_named(check: str, source: str, text: str, detail: str) -> None:
    assert detail in found(text, source)[check]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("It costs 1,000.50 euros in 2019.", "Es kostet 2019 1.000,50 Euro."),
        ("About 10’000 people", "Rund 10.000 Menschen"),
        ("Ｎｏ．１２", "Nummer 12"),
        ("See www.example.org.", "Siehe www.example.org!"),
        ("A 20% solution, 50 % done", "Eine 20%ige Lösung, 50 % davon getan"),
        ("x < y and y > z", "x < y und y > z"),
        ("{name}: %d of %s", "%d von %s: {name}"),
        ("Paris Berlin", "Paris Berlin"),  # too short to tell
        ("It is very, very late.", "Es ist sehr, sehr spät."),
        ("", "Ein Satz"),
    ],
)
def test_ordinary_lines_are_left_alone(source: str, text: str) -> None:
    assert set(found(text, source)) <= {"length"}


def test_what_the_reference_does_too_is_no_fault() -> None:
    assert found("Um 17 Uhr", "At 5 pm", "Es ist 17 Uhr") == {}
    assert found("la la la la", "la la la la", "la la la la") == {}
    assert found("Max Planck Institute Berlin", "Max Planck Institute Berlin", "Max Planck Institute Berlin") == {}


def test_lengths_are_held_against_the_reference() -> None:
    assert found("Kurz.")["length"] == "too short: 5 characters, the reference has 36"
    assert found("Wort " * 30)["length"].startswith("too long: 120 characters")
    assert "length" not in found("Ein Satz, der lang genug ist.")


def test_an_empty_line_is_named_unless_its_source_is_empty_too() -> None:
    assert found(" ") == {"empty": "An ordinary sentence that is long enough…"[:38] + " …"}
    assert found("", source="", reference=" ") == {}


def test_without_a_source_the_reference_stands_in_its_place() -> None:
    assert found("Seite 4", None, "Seite 3")["number"] == "lacks 3; has 4"
    assert found("", None)["empty"]


def test_findings_come_by_line_and_are_counted() -> None:
    sources = ["Page 3", "Fine", "Page 4 {x}"]
    given = Texts(("a",), (["Seite 2", "Gut", "Seite"],), ("r",), (["Seite 3", "Gut", "Seite 4 {x}"],), sources)
    findings = list(find(given))
    assert [(finding.line, finding.check) for finding in findings] == [(1, "number"), (3, "number"), (3, "placeholder")]
    assert summary(findings) == {"number": 2, "placeholder": 1}


def test_every_check_has_a_name_of_one_word() -> None:
    assert all(name.isalpha() and check.__doc__ for name, check in CHECKS.items())
