"""Pairs in other letters: a share of training alone, chosen by the pair's own text, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus.test_prepare import pairs_in, plain, report, run
from hypothesis import given
from hypothesis import strategies as st

from nmt.checking import check
from nmt.corpus.clean import Cleaner
from nmt.corpus.config import PreprocessConfig
from nmt.corpus.moses import Moses
from nmt.corpus.prepare import Corpus
from nmt.corpus.recase import TITLE, UPPER, Recase, recased
from nmt.errors import RecipeError
from nmt.events import Notice

PAIRS = [(f"bal kor {n}", f"der kor von {n}") for n in range(4000)]


@pytest.mark.parametrize(
    ("line", "language", "upper", "title"),
    [
        ("bal kor", "en", "BAL KOR", "Bal Kor"),
        ("don't, (kor)  dem", "en", "DON'T, (KOR)  DEM", "Don't, (kor)  Dem"),
        ("straße ßa über", "de", "STRASSE SSA ÜBER", "Straße Ssa Über"),
        ("ışık için", "tr", "IŞIK İÇİN", "Işık İçin"),
        ("için", "az_AZ", "İÇİN", "İçin"),
        ("\u01c6ep", "hr", "\u01c4EP", "\u01c4ep"),
        ("привет мир", "ru", "ПРИВЕТ МИР", "Привет Мир"),
        ("东京 42", "zh", "东京 42", "东京 42"),
        ("McDonald USA", "en", "MCDONALD USA", "McDonald USA"),
    ],
)
def test_lines_are_written_as_headlines_are(line: str, language: str, upper: str, title: str) -> None:
    assert recased(line, UPPER, language) == upper
    assert recased(line, TITLE, language) == title


@given(line=st.text(st.characters(exclude_categories=["Cs"]), max_size=30), language=st.sampled_from(["en", "tr"]))
def test_words_stay_as_many_and_white_space_as_it_is(line: str, language: str) -> None:
    for form in (UPPER, TITLE):
        written = recased(line, form, language)
        assert len(written.split()) == len(line.split())
        assert [c for c in written if c.isspace()] == [c for c in line if c.isspace()]


def test_shares_are_those_asked_for_and_belong_to_the_pair() -> None:
    recase = Recase(0.1, 0.05)
    forms = [recase.form(*pair) for pair in PAIRS]
    assert forms.count(UPPER) == pytest.approx(400, abs=4 * 400**0.5)
    assert forms.count(TITLE) == pytest.approx(200, abs=4 * 200**0.5)
    assert forms == [recase.form(*pair) for pair in PAIRS]
    assert {Recase(1.0).form(*pair) for pair in PAIRS[:50]} == {UPPER}
    assert {Recase(0.0, 1.0).form(*pair) for pair in PAIRS[:50]} == {TITLE}
    assert {Recase().form(*pair) for pair in PAIRS} == {""}


def test_training_alone_is_written_anew_line_for_line_and_told(tmp_path: Path) -> None:
    valid = plain(tmp_path, "v", [(f"gom {n}", f"ban {n}") for n in range(50)])
    corpora = [Corpus(plain(tmp_path, "a", [*PAIRS, *PAIRS[:100]]))]
    run(tmp_path / "plain", corpora, valid)
    events = run(tmp_path / "out", corpora, valid, recase=Recase(0.1, 0.1))
    usual, found = pairs_in(tmp_path / "plain"), pairs_in(tmp_path / "out")
    assert usual == PAIRS, "duplicates are told by the text as it was"
    assert [(s.lower(), t.lower()) for s, t in found] == usual
    counts = {UPPER: 0, TITLE: 0, "": 0}
    for one, pair in zip(usual, found, strict=True):
        form = Recase(0.1, 0.1).form(*one)
        counts[form] += 1
        assert pair == (tuple(recased(line, form, "en") for line in one) if form else one)
    assert report(tmp_path / "out")["corpora"][0]["recased"] == {UPPER: counts[UPPER], TITLE: counts[TITLE]}
    told = f"a.x + a.y: of the pairs kept, {counts[UPPER]} in capitals, {counts[TITLE]} in title case"
    assert Notice(told) in events
    assert pairs_in(tmp_path / "out", "valid") == pairs_in(tmp_path / "plain", "valid")
    assert "recased" not in (tmp_path / "plain" / "report.json").read_text()


def test_what_is_held_out_does_not_come_in_by_other_letters(tmp_path: Path) -> None:
    valid = plain(tmp_path, "v", [("BAL KOR", "x")])
    run(tmp_path / "out", [Corpus(plain(tmp_path, "a", [("bal kor", "gom"), ("dem", "ban")]))], valid, recase=Recase(1))
    assert pairs_in(tmp_path / "out") == [("bal kor", "gom"), ("DEM", "BAN")]


def test_moses_mode_makes_its_escapes_of_the_new_letters(tmp_path: Path) -> None:
    cleaners = Cleaner("en", moses=Moses("en")), Cleaner("de", moses=Moses("de"))
    corpora = [Corpus(plain(tmp_path, "a", [("bal & kor's dem.", "der kor & gom.")]))]
    run(tmp_path / "out", corpora, plain(tmp_path, "v", [("x", "y")]), cleaners=cleaners, recase=Recase(1))
    assert pairs_in(tmp_path / "out") == [("BAL &amp; KOR &apos;S DEM .", "DER KOR &amp; GOM .")]


def test_shares_above_the_whole_are_refused() -> None:
    assert check(PreprocessConfig, {"augment_upper": 0.5, "augment_title": 0.5}, "r").recase() == Recase(0.5, 0.5)
    with pytest.raises(RecipeError, match="together over 1"):
        check(PreprocessConfig, {"augment_upper": 0.6, "augment_title": 0.5}, "r")
