"""nmt attention: pages, numbers and pictures of a model's own attention."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from search.models import learn_vocabulary, save_folder

import nmt as package


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("attention")
    return save_folder(folder / "model", learn_vocabulary(folder))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_page_is_written_where_nothing_else_is_said(nmt, model: Path, here: Path) -> None:
    ended = nmt("attention", model, "bal kor", "--device", "cpu")
    assert (ended.status, ended.out, ended.err) == (0, "", "wrote attention.html\n")
    assert (here / "attention.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [path.name for path in here.iterdir()] == ["attention.html"]


def test_json_on_stdout_is_the_models_translation_and_its_weights(nmt, model: Path) -> None:
    ended = nmt("attention", model, "bal kor", "--format", "json", "--output", "-", "--device", "cpu", "--beam", 1)
    data = json.loads(ended.out)
    assert (ended.status, ended.err) == (0, "")
    assert data["target"] == package.load(model, "cpu").translate(["bal kor"], beam=1)[0]
    assert len(data["weights"]["cross"]) == 2 and len(data["weights"]["cross"][0]) == 2


def test_the_suffix_of_the_file_chooses_the_format(nmt, model: Path, here: Path) -> None:
    assert nmt("attention", model, "bal", "-o", "a.json", "--words", "--target", "kor", "--device", "cpu").status == 0
    data = json.loads((here / "a.json").read_text(encoding="utf-8"))
    assert (data["units"], data["target"], data["target_is"]) == ("words", "kor", "given")
    assert data["written_tokens"] == ["kor", "</s>"]


def test_a_layer_that_is_not_there_is_wrong_usage(nmt, model: Path) -> None:
    ended = nmt("attention", model, "bal", "--kind", "encoder", "--layer", 2, "--device", "cpu")
    assert ended.status == 2 and "--layer 2: this model's encoder has 1" in ended.err


def test_a_blank_sentence_is_refused_with_a_hint(nmt, model: Path, here: Path) -> None:
    ended = nmt("attention", model, " ", "--device", "cpu")
    assert ended.status == 1 and ended.err.startswith("error: the sentence is blank") and "hint: " in ended.err
    assert not list(here.iterdir())


def test_a_picture_is_written_or_the_extra_is_named(nmt, model: Path, here: Path) -> None:
    ended = nmt("attention", model, "bal", "--output", "a.png", "--head", 1, "--layer", 1, "--device", "cpu")
    if ended.status == 0:
        assert (here / "a.png").read_bytes().startswith(b"\x89PNG")
    else:
        assert ended.status == 1 and 'hint: pip install "nmt[plots]"' in ended.err


def test_a_picture_that_cannot_be_drawn_is_refused_before_a_model_is_read(nmt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ended = nmt("attention", "nowhere", "bal", "--output", "a.png")
    assert ended.status == 1 and 'hint: pip install "nmt[plots]"' in ended.err


def test_heads_are_measured_on_a_corpus(nmt, model: Path, here: Path) -> None:
    for name, text in (("s", "bal kor\ngem dan bal\n"), ("t", "kor\nbal dan\n")):
        (here / name).write_text(text)
    files = ("--heads", "--source", "s", "--target", "t", "--device", "cpu")
    ended = nmt("attention", model, *files)
    rows = ended.out.splitlines()
    assert ended.status == 0 and rows[0].split()[:4] == ["attention", "layer", "head", "importance"]
    assert len(rows) == 1 + 3 + 2 * (1 + 2 + 2)
    assert "2 pairs" in ended.err and "loss" in ended.err
    data = json.loads(nmt("attention", model, *files, "--format", "json", "--quiet").out)
    assert len(data["heads"]) == 10 and data["pairs"] == 2


def test_heads_need_files_and_otherwise_a_sentence_is_needed(nmt, model: Path) -> None:
    assert nmt("attention", model, "--heads", "--source", "s").status == 2
    files = ("--source", "s", "--target", "t")
    assert nmt("attention", model, "bal", "--heads", *files).status == 2
    for other in (["--words"], ["--layer", 1], ["--beam", 2], ["--kind", "cross"], ["--format", "png"]):
        ended = nmt("attention", model, "--heads", *files, *other)
        assert ended.status == 2 and other[-1 if "png" in other else 0] in ended.err
    assert nmt("attention", model, "bal", "--source", "s").status == 2
    assert nmt("attention", model, "bal", "--target", "kor", "--beam", 2).status == 2
    ended = nmt("attention", model)
    assert ended.status == 2 and "a SENTENCE is missing" in ended.err


@pytest.fixture
def pairs(here: Path) -> tuple[str, ...]:
    """Options that name two pairs of sentences."""
    for name, text in (("s", "bal kor\ngem dan bal\n"), ("t", "kor\nbal dan\n")):
        (here / name).write_text(text)
    return ("--align", "--source", "s", "--target", "t", "--device", "cpu")


def test_words_of_pairs_are_aligned_a_line_a_pair(nmt, model: Path, pairs: tuple[str, ...], here: Path) -> None:
    ended = nmt("attention", model, *pairs)
    assert ended.status == 0
    links = [[tuple(map(int, link.split("-"))) for link in line.split()] for line in ended.out.splitlines()]
    assert [[j for _, j in sorted(line, key=lambda link: link[1])] for line in links] == [[0], [0, 1]]
    assert nmt("attention", model, *pairs, "--layer", 1).out == ended.out
    assert nmt("attention", model, *pairs, "-o", "links").out == ""
    assert (here / "links").read_text() == ended.out


def test_gold_links_give_the_error_rate_of_each_layer(nmt, model: Path, pairs: tuple[str, ...], here: Path) -> None:
    (here / "gold").write_text(nmt("attention", model, *pairs).out)
    rows = nmt("attention", model, *pairs, "--gold", "gold").out.splitlines()
    assert rows[0].split() == ["layer", "AER", "precision", "recall", "links", "sure", "possible"]
    assert rows[1].split() == ["1*", "0.00", "100.00", "100.00", "3", "3", "3"]
    data = json.loads(nmt("attention", model, *pairs, "--gold", "gold", "--format", "json").out)
    assert data["usual_layer"] == 0 and data["scores"][0]["error"] == 0 and len(data["links"]) == 2


def test_aligning_needs_files_and_refuses_what_has_no_meaning(nmt, model: Path, pairs, here: Path) -> None:
    for other in (["--heads"], ["--words"], ["--beam", 2], ["--head", 1], ["--format", "png"], ["bal"]):
        assert nmt("attention", model, *pairs, *other).status == 2
    assert nmt("attention", model, "bal", "--gold", "g").status == 2
    assert nmt("attention", model, "--align", "--source", "s").status == 2
    assert "this model's cross has 2" in nmt("attention", model, *pairs, "--layer", 3).err
    (here / "gold").write_text("0-1\n\n")
    ended = nmt("attention", model, *pairs, "--gold", "gold")
    assert ended.status == 1 and "gold:1: '0-1': the target has 1 word," in ended.err and "hint: " in ended.err
