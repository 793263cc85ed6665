"""The report of runs: every part told, nothing fetched, text never taken for markup."""

from __future__ import annotations

import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from analysis.browser import foreign
from analysis.runs import REFERENCES, SIGNATURE, SOURCES, write_run

from nmt.analysis.record import read_record
from nmt.analysis.report import flatten, report, span
from nmt.errors import NmtError

VOID = {"meta", "link", "br"}


class Balance(HTMLParser):
    """Finds elements that are closed out of turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"{tag} at {self.getpos()}")


def text_of(html: str) -> str:
    """What a reader sees, white space evened out."""
    body = re.sub(r"<style>.*?</style>|<title>.*?</title>", "", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())


@pytest.fixture
def html(tmp_path: Path) -> str:
    return report([read_record(write_run(tmp_path))])


def test_every_part_of_a_run_is_told(html: str) -> None:
    text = text_of(html)
    for told in (
        "languages en → de",
        "training pairs 1,100 of 1,200 read",
        "vocabulary 500 shared",
        "updates 40, 3 epochs",
        "best validation loss 4.500, BLEU 12.50 at 40",
        "training ended all 40 steps are done",
        f"news (22 lines) BLEU 31.25 (31.00 ± 2.50) {SIGNATURE}",
        "holds 95 % of the scores",
        "toy: trained on 1,100 pairs; validated on 9, BLEU and chrF of all.",
        "news (22 lines) TER (lower is better) 68.75 nrefs:1|case:lc",
        "news: news.de is empty in 1 of 22 lines",
        "train.en + train.de 1,200 1,100 100 3",
        "duplicate 17 Yes <i>. Ja.",
        "train source 1,100 13,000 1.30 11.8 77 0.00 %",
        "BLEU by length of the source, n = 22",
        "preprocess 2026-01-02T03:04:05 1 min 15 s 0.1.0",
        "[bpe] size = 500",
    ):
        assert told in text, told


def test_it_is_one_file_without_scripts_and_in_order(html: str) -> None:
    assert not foreign(html) and "<script" not in html and "default-src 'none'" in html
    balance = Balance()
    balance.feed(html)
    assert balance.faults == [] and balance.open == []


def test_text_of_the_corpus_is_shown_and_never_markup(html: str) -> None:
    assert SOURCES[1] in text_of(html)
    assert "<b>" not in html and "<i>" not in html and "&lt;b&gt;" in html


def test_differences_are_marked_on_both_sides(html: str) -> None:
    assert '<mark class="missed">sehr</mark>' in html
    line = next(part for part in html.split("<li>") if "line 2," in part)
    assert 'Eine <mark class="missed">&lt;b&gt;</mark>' in line


def test_the_worst_translation_comes_first_of_the_worst(html: str) -> None:
    worst = html[html.index("with the lowest chrF") :]
    assert "line 2," in worst[: worst.index("</li>")]


def test_the_losses_of_one_run_have_a_colour_each(html: str) -> None:
    figure = next(part for part in html.split("<figure>") if "Loss:" in part)
    looks = re.findall(r'<polyline [^>]*class="(run\d)', figure)
    assert len(set(looks)) == len(looks) == 2


def test_curves_leave_out_what_is_not_finite(html: str) -> None:
    figure = next(part for part in html.split("<figure>") if "Loss:" in part)
    lines = re.findall(r'<polyline points="([^"]*)"', figure)
    assert [len(points.split()) for points in lines] == [4, 2]
    assert "nan" not in html.lower()


def test_several_runs_stand_side_by_side(tmp_path: Path) -> None:
    first, second = write_run(tmp_path, "first"), write_run(tmp_path, "second", size=800, bleu=33.5, better=0.5)
    html = report([read_record(first), read_record(second)])
    text = text_of(html)
    assert "setting first second bpe.size 500 800 Scores" in text
    assert f"news (22 lines) BLEU 31.25 (31.00 ± 2.50) 33.50 (33.25 ± 2.50) {SIGNATURE}" in text
    assert "<strong>33.50 (33.25 ± 2.50)</strong>" in html
    assert "<strong>66.50</strong>" in html and "<strong>68.75</strong>" not in html
    figure = next(part for part in html.split("<figure>") if "Loss:" in part)
    assert figure.count("<polyline") == 4
    assert all(name in text_of(figure) for name in ("first, training", "second, validation"))
    assert html.count("<article>") == 2


def test_the_same_run_twice_differs_in_nothing(tmp_path: Path) -> None:
    record = read_record(write_run(tmp_path))
    assert "The recipes are the same" in report([record, record])


def test_a_run_that_has_only_begun_is_told_as_far_as_it_is(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    for name in ("preprocess/report.json", "bpe/report.json", "scores/scores.json", "translations/news.de.jsonl"):
        (run / name).unlink()
    (run / "journal.jsonl").write_text('{"event": "step", "st')
    text = text_of(report([read_record(run)]))
    assert "not translated yet" in text and "languages en → de" in text


def test_references_that_have_changed_are_named(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    (tmp_path / "news.de").write_text("\n".join(REFERENCES[:-1]) + "\n", encoding="utf-8")
    assert "the references have changed since" in report([read_record(run)])
    (tmp_path / "news.de").unlink()
    assert "news.de" in text_of(report([read_record(run)]))


def test_what_is_no_run_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(NmtError, match="no run folder: it holds no recipe.toml"):
        read_record(tmp_path)
    with pytest.raises(NmtError, match="there is no such folder"):
        read_record(tmp_path / "nowhere")


def test_reporting_needs_no_torch(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from nmt.analysis.record import read_record
from nmt.analysis.report import report
report([read_record(Path({str(write_run(tmp_path))!r}))])
assert "torch" not in sys.modules and "matplotlib" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_flattening_numbers_tables_and_keeps_plain_lists() -> None:
    recipe = {"a": {"b": 1}, "c": [{"d": 2}, {"d": 3}], "e": [4, 5]}
    assert dict(flatten(recipe)) == {"a.b": 1, "c.0.d": 2, "c.1.d": 3, "e": [4, 5]}


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.25, "0.2 s"), (59, "59 s"), (75, "1 min 15 s"), (7500, "2 h 5 min"), (3599.7, "1 h 0 min")]
)
def test_spans_are_for_people(seconds: float, text: str) -> None:
    assert span(seconds) == text
