"""Commands of a model with tags, as typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from train import tagged
from train.runs import recipe

import nmt as library
from nmt.stages.run import choose, run_stages
from nmt.stages.stage import RunFolder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tags")
    tagged.write(folder)
    changes = ("train.steps=4", "average.count=1", "train.valid_lines=1")
    list(run_stages(recipe(folder, *changes), RunFolder(folder / "run"), choose(last="average")))
    return folder / "run"


def test_to_and_tag_are_two_ways_to_ask(nmt, model: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("ab cd\n\nef\n")
    command = ("translate", model, "--input", tmp_path / "in", "--device", "cpu")
    one, same, other = (nmt(*command, *ask).out for ask in (("--to", "xx"), ("--tag", "<2xx>"), ("--to", "yy")))
    assert one == same != other and one.count("\n") == 3


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ((), "error: line 1: this model was trained with a tag before every sentence; it knows <2xx>, <2yy>"),
        (("--to", "de"), "error: line 1: <2de> is not a tag of this model; it knows <2xx>, <2yy>"),
        (("--tag", "xx"), "error: line 1: xx is not a tag of this model; it knows <2xx>, <2yy>"),
    ],
)
def test_a_missing_or_unknown_tag_is_told_before_anything_is_written(
    nmt, asked, told, model: Path, tmp_path: Path
) -> None:
    (tmp_path / "in").write_text("ab cd\n")
    ended = nmt("translate", model, "--input", tmp_path / "in", "--output", tmp_path / "out", *asked)
    assert ended.status == 1 and told in ended.err and not (tmp_path / "out").exists()


def test_both_at_once_are_refused(nmt, model: Path) -> None:
    assert nmt("translate", model, "--to", "xx", "--tag", "<2xx>").status == 2


def test_json_lines_ask_each_for_itself(nmt, model: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("ab cd\n")
    plain = {
        to: nmt("translate", model, "--input", tmp_path / "in", "--to", to).out.rstrip("\n") for to in ("xx", "yy")
    }
    asked = [{"to": "yy"}, {"tag": "<2xx>"}, {}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"source": "ab cd", "control": one}) + "\n" for one in asked))
    command = ("translate", model, "--input", tmp_path / "in.jsonl", "--input-format", "jsonl", "--to", "xx")
    found = [json.loads(line)["translation"] for line in nmt(*command).out.splitlines()]
    assert found == [plain["yy"], plain["xx"], plain["xx"]]


def test_other_commands_take_them_too(nmt, model: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("ab cd\n")
    files = ("--source", tmp_path / "in", "--target", tmp_path / "in")
    scores = [nmt("rescore", model, *files, "--to", to).out for to in ("xx", "yy")]
    assert scores[0] != scores[1] and nmt("rescore", model, *files).status == 1
    assert nmt("attention", model, "ab cd", "--output", tmp_path / "a.json").status == 1
    assert nmt("attention", model, "ab cd", "--to", "yy", "--output", tmp_path / "a.json").status == 0
    assert json.loads((tmp_path / "a.json").read_text())["source_tokens"][0] == "<2yy>"


def test_a_model_that_orders_the_n_best_reads_the_tag_of_each_line(nmt, model: Path, tmp_path: Path) -> None:
    asked = [{"to": "yy"}, {"tag": "<2xx>"}, {}]
    (tmp_path / "in").write_text("".join(json.dumps({"source": "ab cd", "control": one}) + "\n" for one in asked))
    command = ("translate", model, "--input", tmp_path / "in", "--input-format", "jsonl", "--to", "xx", "--n-best", "2")
    ended = nmt(*command, "--rescore-by", model, "--format", "jsonl", "--scores", "--beam", "2")
    assert ended.status == 0, ended.err
    for row, to in zip(map(json.loads, ended.out.splitlines()), ("yy", "xx", "xx"), strict=True):
        texts = [one["translation"] for one in row["alternatives"]]
        own = [found.score for found in library.load(model, "cpu").rescore(["ab cd"] * 2, texts, tag=f"<2{to}>")]
        assert [one["features"]["Rescore0"] for one in row["alternatives"]] == pytest.approx(own, abs=1e-4)
