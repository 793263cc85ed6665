"""A conversation: settings last, mistakes are told and change nothing."""

from __future__ import annotations

import pytest
from search.models import sentences

from nmt.errors import NmtError
from nmt.search.control.request import Request
from nmt.search.control.session import Session
from nmt.search.translate import Translator

LINE = sentences(1, 6, seed=7)[0]


@pytest.fixture
def session(random_translator: Translator) -> Session:
    return Session(random_translator, Request(""), beam=3)


def test_a_line_is_translated_as_elsewhere(session: Session, random_translator: Translator) -> None:
    assert list(session.translate(LINE)) == random_translator.translate([LINE], beam=3)


@pytest.mark.parametrize(
    ("command", "settings"),
    [
        (":beam 1", {"beam": 1}),
        (":length-penalty average:1", {"beam": 3, "length_penalty": "average:1"}),
        (":no_repeat_ngram 1", {"beam": 3, "no_repeat_ngram": 1}),
        (":sample on", {"beam": 3, "sample": True}),
        (":beam default", {}),
    ],
)
def test_settings_last(
    session: Session, random_translator: Translator, command: str, settings: dict[str, object]
) -> None:
    list(session.command(command[1:]))
    for _ in range(2):
        assert list(session.translate(LINE)) == random_translator.translate([LINE], **settings)
    list(session.command("reset"))
    assert list(session.translate(LINE)) == random_translator.translate([LINE], beam=3)


def test_several_come_with_ranks_and_scores_from_a_beam_that_is_wide_enough(
    session: Session, random_translator: Translator
) -> None:
    assert list(session.command("n-best 5")) == ["n-best 5"]
    (found,) = random_translator.stream([LINE], beam=5, n_best=5)
    assert list(session.translate(LINE)) == [
        f"{rank:>2}  {c.score:8.4f}  {c.text}" for rank, c in enumerate(found.alternatives, 1)
    ]


def test_texts_and_switches(session: Session, random_translator: Translator) -> None:
    for command in ("prefix bal", "require kor", "forbid dem", "alignment", "scores on", "markup"):
        list(session.command(command))
    request = Request("<b>gom</b>", prefix="bal", require=("kor",), forbid=("dem",), markup=True)
    (found,) = random_translator.stream([request], beam=3, alignment=True)
    shown = list(session.translate("<b>gom</b>"))
    assert found.text in shown[-2]
    assert f"{found.score:.4f}" in shown[-2]
    assert shown[-1].split() == [f"{i}-{j}" for i, j in found.best.alignment or ()]
    told = list(session.command("settings"))
    assert {"prefix 'bal'", "require 'kor'", "forbid 'dem'", "scores on", "alignment on", "beam 3"} <= set(told)
    for command in ("prefix", "require", "forbid", "alignment off", "scores", "markup"):
        list(session.command(command))
    assert list(session.translate(LINE)) == random_translator.translate([LINE], beam=3)


@pytest.mark.parametrize(
    ("command", "words"),
    [("beam 0", "beam"), ("beam many", "beam"), ("baem 2", ":beam"), ("n-best 0", "n-best"), ("scores maybe", "on")],
)
def test_what_cannot_be_is_told_and_changes_nothing(
    session: Session, random_translator: Translator, command: str, words: str
) -> None:
    with pytest.raises(NmtError) as told:
        list(session.command(command))
    assert words in told.value.problem + told.value.hint
    assert list(session.translate(LINE)) == random_translator.translate([LINE], beam=3)


def test_help_names_what_there_is(session: Session) -> None:
    shown = "\n".join(session.command("help"))
    assert all(f":{name}" in shown for name in ("beam", "n-best", "prefix", "alignment", "settings", "quit"))
