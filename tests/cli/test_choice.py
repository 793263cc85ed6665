"""nmt translate's options that choose among translations, and nmt lm."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from search.models import learn_vocabulary, save_folder, sentences

import nmt as library
from nmt.search.control.request import Request
from nmt.search.control.rerank import Rescoring
from nmt.search.control.shortlist import Lexicon
from nmt.search.translate import Translator
from nmt.subwords.ngram import NgramModel

Command = Callable[..., Any]
LINES = sentences(6, 6, seed=81)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("choice")
    return save_folder(folder / "model", learn_vocabulary(folder))


@pytest.fixture(scope="module")
def translator(model: Path) -> Translator:
    return library.load(model, "cpu")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


def nbest(out: str) -> list[list[str]]:
    rows = [row.split(" ||| ") for row in out.splitlines()]
    return [[row[1] for row in rows if row[0] == str(i)] for i, _ in enumerate(LINES)]


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ("--beam-groups 2 --diversity 2", {"beam_groups": 2, "diversity": 2.0}),
        ("--diverse-beam-groups 4 --diverse-beam-strength 1 --beam 8", {"beam": 8, "beam_groups": 4, "diversity": 1.0}),
        ("--coverage-penalty 0.5", {"coverage_penalty": 0.5}),
        ("--patience 3 --lenpen 2", {"patience": 3.0, "length_penalty": "average:2"}),
        ("--patience 1", {}),
        ("--unique-text", {"unique_text": True}),
        ("--replace-unk", {"replace_unk": True}),
        ("--beam-groups 1 --coverage-penalty 0", {}),
    ],
)
def test_options_are_settings(
    nmt: Command, model: Path, translator: Translator, text: Path, options: str, settings: dict[str, Any]
) -> None:
    ended = nmt("translate", model, "--input", text, "--n-best", "3", "--quiet", *options.split())
    expected = [[c.text for c in t.alternatives] for t in translator.stream(LINES, n_best=3, **settings)]
    assert (ended.status, nbest(ended.out)) == (0, expected)


def test_other_models_order_the_n_best(nmt: Command, model: Path, translator: Translator, text: Path) -> None:
    again = Rescoring([(translator, 2.0), (translator, 0.0)], "none")
    expected = [again(t) for t in translator.stream(LINES, n_best=4, length_penalty="none")]
    options = ["--n-best", "4", "--rescore-by", model, "--rescore-by", model, "--weight", "2", "--weight", "0"]
    ended = nmt("translate", model, "--input", text, "--quiet", "--length-penalty", "none", *options)
    assert ended.out.splitlines() == [t.text for t in expected]
    ended = nmt("translate", model, "--input", text, "--length-penalty", "none", "--format", "nbest", *options, "-q")
    assert nbest(ended.out) == [[c.text for c in t.alternatives] for t in expected]
    assert ended.out.count(" Rescore0= -") == ended.out.count(" Rescore1= -") == 4 * len(LINES)
    ended = nmt("translate", model, "--input", text, "--format", "jsonl", *options, "-q")
    row = json.loads(ended.out.splitlines()[0])
    assert row["features"]["Rescore0"] == pytest.approx(row["features"]["Rescore1"])


def test_a_language_model_is_made_and_listened_to(
    nmt: Command, model: Path, translator: Translator, text: Path, tmp_path: Path
) -> None:
    (tmp_path / "more").write_text("".join(f"{' '.join(sorted(line.split()))}\n\n" for line in sentences(200, seed=3)))
    assert (
        nmt("lm", model, "--input", tmp_path / "more", "--output", tmp_path / "x.arpa.gz", "--order", "2").status == 0
    )
    target = translator.target_vocabulary
    lm = NgramModel.read(tmp_path / "x.arpa.gz", [target.piece(i) for i in range(len(target))])
    assert lm.order == 2
    expected = translator.translate([Request(line, lm=lm) for line in LINES], lm_weight=20)
    ended = nmt("translate", model, "--input", text, "--lm", tmp_path / "x.arpa.gz", "--lm-weight", "20", "--quiet")
    assert ended.out.splitlines() == expected != translator.translate(LINES)
    ended = nmt("lm", model, "--input", text.with_name("none"))
    assert (ended.status, ended.out) == (1, "")


def test_a_shortlist_is_learned_and_kept_to(
    nmt: Command, model: Path, translator: Translator, text: Path, tmp_path: Path
) -> None:
    files = ["--source", text, "--target", text]
    assert nmt("lexicon", model, *files, "--output", tmp_path / "lex", "--best", "3").status == 0
    vocabulary = translator.target_vocabulary
    pieces = [vocabulary.piece(i) for i in range(len(vocabulary))]
    lexicon = Lexicon.read(tmp_path / "lex", pieces, pieces)
    expected = translator.translate([Request(line, shortlist=lexicon) for line in LINES])
    ended = nmt("translate", model, "--input", text, "--shortlist", tmp_path / "lex", "--quiet")
    assert ended.out.splitlines() == expected
    (tmp_path / "less").write_text("bal\n")
    ended = nmt("lexicon", model, "--source", text, "--target", tmp_path / "less")
    assert (ended.status, ended.out) == (1, "")
    assert "only 1 line;" in ended.err


def test_lines_hold_markup_or_ask_for_it(nmt: Command, model: Path, translator: Translator, tmp_path: Path) -> None:
    line = "<p>bal <b>kor dem</b><br/></p>"
    (tmp_path / "in").write_text(f"{line}\nbal\n")
    expected = translator.translate([Request(line, markup=True), "bal"])
    assert nmt("translate", model, "--input", tmp_path / "in", "--markup", "--quiet").out.splitlines() == expected
    rows = [{"source": line, "control": {"markup": True}}, {"source": line}]
    (tmp_path / "in").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ended = nmt("translate", model, "--input", tmp_path / "in", "--input-format", "jsonl", "--quiet")
    assert [json.loads(row)["translation"] for row in ended.out.splitlines()] == [
        expected[0],
        translator.translate([line])[0],
    ]


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (["--beam-groups", "3"], 1, "--beam-groups 3"),
        (["--beam-groups", "2", "--sample"], 2, "--sample"),
        (["--diversity", "1"], 2, "--beam-groups"),
        (["--temperature", "1e-300", "--sample"], 1, "temperature"),
        (["--rescore-by", "no/model"], 2, "--n-best"),
        (["--n-best", "2", "--rescore-by", "no/model"], 1, "no/model"),
        (["--n-best", "2", "--rescore-weight", "1"], 2, "--rescore-by"),
        (["--n-best", "2", "--rescore-by", "no/model", "--rescore-weight", "nan"], 2, "--rescore-weight"),
        (["--lm", "no/file"], 1, "no/file"),
        (["--lm-weight", "1"], 2, "--lm"),
        (["--coverage-penalty", "-1"], 2, "coverage"),
        (["--interactive", "--format", "jsonl"], 2, "--interactive"),
        (["--resume"], 2, "--output"),
    ],
)
def test_unfit_options_leave_stdout_empty(
    nmt: Command, model: Path, text: Path, options: list[str], status: int, words: str
) -> None:
    ended = nmt("translate", model, "--input", text, *options)
    assert (ended.status, ended.out) == (status, "")
    assert words in ended.err
