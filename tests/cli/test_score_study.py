"""`nmt score` with several systems, tests, groups, worst lines and checks, as typed."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nmt.cli import show
from score.systems import references, system

REFERENCE = references(40)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    files = {
        "ref": REFERENCE,
        "a": system(REFERENCE, 0.4, 1),
        "b": system(REFERENCE, 0.1, 2),
        "tags": [("news", "talks")[i % 2] for i in range(40)],
        "source": [f"satz {i} von 40" for i in range(40)],
        "training": REFERENCE * 3,
    }
    for name, lines in files.items():
        (tmp_path / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return tmp_path


pytestmark = pytest.mark.usefixtures("folder")


def test_several_systems_are_a_table_with_signatures_below(nmt: Callable[..., Any]) -> None:
    alone = [nmt("score", "ref", "-i", name, "-m", "bleu", "-m", "ter").out.splitlines() for name in "ab"]
    done = nmt("score", "ref", "-i", "a", "-i", "b", "-m", "bleu", "-m", "ter")
    rows = [line.split() for line in done.out.splitlines()]
    assert rows[0] == ["system", "BLEU", "TER"]
    for row, name, lines in zip(rows[1:3], "ab", alone, strict=True):
        assert row == [name, *(line.split()[1] for line in lines)]
    assert rows[3] == ["BLEU:", alone[0][0].split()[2]]
    assert done.err == ""


def test_tables_name_files_without_their_folders_where_that_is_enough(nmt: Callable[..., Any], folder: Path) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "a").write_text((folder / "b").read_text())
    out = nmt("score", "ref", "-i", str(folder / "a"), "-i", str(folder / "b"), "--worst", "1").out
    assert str(folder) not in out
    assert f"{Path('other', 'a')} " in nmt("score", "ref", "-i", "a", "-i", "other/a").out


def test_confidence_is_told_with_its_signature(nmt: Callable[..., Any]) -> None:
    plain = nmt("score", "ref", "-i", "a").out
    text = nmt("score", "ref", "-i", "a", "--confidence", "--samples", "100").out
    assert text.startswith(plain.split("  ")[0] + " (") and " ± " in text
    assert "nrefs:1|bs:100|seed:12345|" in text
    data = json.loads(nmt("score", "ref", "-i", "a", "--confidence", "--confidence-n", "100", "--json").out)
    assert data["scores"][0]["signature"] == plain.split()[-1]
    assert data["scores"][0]["confidence"]["level"] == 95
    assert data["scores"][0]["confidence"]["half_width"] > 0


@pytest.mark.parametrize(("flag", "sign"), [("--paired-bootstrap", "bs"), ("--paired-ar", "ar")])
def test_systems_are_tested_against_the_first(nmt: Callable[..., Any], flag: str, sign: str) -> None:
    command = ["score", "ref", "-i", "a", "-i", "b", flag, "--samples", "99"]
    out = nmt(*command).out
    assert "p = 0.0100*" in out.splitlines()[2] and "p = " not in out.splitlines()[1]
    assert f"{sign}:99|seed:12345" in out
    data = json.loads(nmt(*command, "--json").out)
    assert data["test"]["baseline"] == "a"
    assert [row["p_value"] for row in data["paired"][0]["systems"]] == [None, 0.01]
    assert [entry["hypothesis"] for entry in data["systems"]] == ["a", "b"]


@pytest.mark.parametrize(("form", "sign"), [("markdown", "| system |"), ("latex", r"\begin{tabular}{lr}")])
def test_tables_go_into_papers(nmt: Callable[..., Any], form: str, sign: str) -> None:
    assert sign in nmt("score", "ref", "-i", "a", "-i", "b", "--format", form).out
    assert sign in nmt("score", "ref", "-i", "a", "--format", form).out


def test_the_paper_s_convention_has_its_own_name(nmt: Callable[..., Any]) -> None:
    out = nmt("score", "ref", "-i", "b", "-m", "bleu", "-m", "bleu-2017", "--language", "en").out.splitlines()
    assert out[0].startswith("BLEU ") and out[1].startswith("BLEU-2017(compound-split) ")
    assert "-en+compound-split|smooth:none" in out[1]


def test_groups_follow_the_scores(nmt: Callable[..., Any]) -> None:
    options = ["--by", "length", "--by", "tags", "--by", "frequency", "--training", "training"]
    out = nmt("score", "ref", "-i", "a", "-i", "b", *options).out
    assert "by length of the reference in words" in out
    assert "by tag in tags" in out and "words by frequency in the training text" in out
    data = json.loads(nmt("score", "ref", "-i", "a", *options, "--json").out)
    assert [sum(group["lines"] for group in by["groups"]) for by in data["by"]] == [40, 40]
    assert [group["name"] for group in data["by"][1]["groups"]] == ["news", "talks"]
    assert all(0 <= group["systems"]["a"]["f1"] <= 100 for group in data["by_frequency"])


def test_details_tell_precisions_and_lengths(nmt: Callable[..., Any]) -> None:
    out = nmt("score", "ref", "-i", "a", "--details").out
    assert "precisions " in out and "brevity penalty 0." in out and "length ratio 0." in out


def test_the_worst_line_is_shown_with_its_differences(nmt: Callable[..., Any]) -> None:
    out = nmt("score", "ref", "-i", "a", "--worst", "1", "--source", "source", "-m", "chrf", "-q").out
    sentences = [float(value) for value in nmt("score", "ref", "-i", "a", "--sentence", "-m", "chrf").out.split()]
    number = sentences.index(min(sentences)) + 1
    assert f"line {number}, chrF2 {min(sentences):.2f}" in out
    assert f"satz {number - 1} von 40" in out and "[-" in out and "\x1b" not in out


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_marks_are_colours_on_a_terminal_and_characters_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [("an ", ""), ("old\x1b", "-"), ("new", "+"), (" ship", "")]
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout", Terminal())
    coloured = show.painted(parts)
    assert "\x1b[" in coloured and "[-" not in coloured and "old\N{REPLACEMENT CHARACTER}" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert show.painted(parts) == "an [-old\x1b-]{+new+} ship"


def test_two_systems_are_shown_where_they_differ(nmt: Callable[..., Any]) -> None:
    out = nmt("score", "ref", "-i", "a", "-i", "b", "--worst", "2").out
    assert "lines that differ most by BLEU" in out and out.count("\nline ") == 2


def test_checks_list_lines_and_a_summary(nmt: Callable[..., Any], folder: Path) -> None:
    lines = [f"{line} {i} {40}" for i, line in enumerate(REFERENCE)]
    lines[6] = "Page {0}"
    lines[8] = ""
    (folder / "odd").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    done = nmt("score", "ref", "-i", "odd", "--source", "source", "--check", "-q")
    assert done.status == 0
    rows = [line.split() for line in done.out.splitlines()]
    assert ["7", "placeholder", "has", "{0}"] in rows
    assert ["9", "empty", "satz", "8", "von", "40"] in rows
    assert rows[-1][:4] == ["2", "of", "40", "lines:"]
    data = json.loads(nmt("score", "ref", "-i", "odd", "--source", "source", "--check", "--json").out)
    assert data["checks"]["odd"]["summary"]["placeholder"] == 1


def test_a_sentence_has_a_column_for_each_system_and_metric(nmt: Callable[..., Any]) -> None:
    out = nmt("score", "ref", "-i", "a", "-i", "b", "--sentence", "-m", "bleu", "-m", "chrf", "-q").out
    assert {len(line.split("\t")) for line in out.splitlines()} == {4}


@pytest.mark.parametrize(
    ("arguments", "status", "problem"),
    [
        (["-i", "a", "--paired-ar"], 1, "there is one"),
        (["-i", "a", "-i", "a"], 1, "a is named twice"),
        (["-i", "a", "-i", "b", "--paired-ar", "--paired-bs"], 2, "choose one"),
        (["-i", "a", "-i", "b", "-i", "ref", "--worst", "3"], 2, "--worst"),
        (["-i", "a", "--by", "frequency"], 1, "--training"),
        (["-i", "a", "--by", "source-length"], 1, "--source"),
        (["-i", "a", "--by", "no-such-file"], 1, "no-such-file"),
        (["-i", "a", "--confidence", "--samples", "0"], 2, "--samples"),
        (["-i", "a", "--samples", "9"], 2, "--samples"),
        (["-i", "a", "--training", "ref"], 2, "--training"),
    ],
)
def test_what_cannot_be_asked_is_said(nmt: Callable[..., Any], arguments: list[str], status: int, problem: str) -> None:
    done = nmt("score", "ref", *arguments)
    assert done.status == status and done.out == ""
    assert problem in done.err and done.err.startswith("error: ")
