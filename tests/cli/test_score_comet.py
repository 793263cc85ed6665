"""COMET by its own program: what it is asked, what is made of its answer, and what is said when it gives none."""

from __future__ import annotations

import json
import random
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from nmt.errors import ModelError
from nmt.score.comet import find_model
from nmt.score.valued import Valued

PROGRAM = f"""#!{sys.executable}
import argparse, json, os, sys
assert os.environ["HF_HUB_OFFLINE"] == os.environ["TRANSFORMERS_OFFLINE"] == "1"
p = argparse.ArgumentParser()
p.add_argument("--sources"); p.add_argument("--translations", nargs="+"); p.add_argument("--references")
p.add_argument("--model"); p.add_argument("--to_json"); p.add_argument("--quiet", action="store_true")
p.add_argument("--only_system", action="store_true")
a = p.parse_args()
assert a.model.endswith(".ckpt") and os.path.isfile(a.model)
if os.path.getsize(a.model) == 1:
    sys.exit("Loading\\nOSError: cannot find the encoder")
read = lambda name: [line.strip() for line in open(name, encoding="utf-8").readlines()]
sources, references = read(a.sources), read(a.references) if a.references else None
data = {{}}
for name in a.translations:
    rows = [{{"src": s, "mt": t}} for s, t in zip(sources, read(name), strict=True)]
    for i, row in enumerate(rows):
        if references:
            row["ref"] = references[i]
        row["COMET"] = 1 / (2 + abs(len(row["src"]) - len(row["mt"]))) + (0.25 if row.get("ref") == row["mt"] else 0)
    data[name] = rows
    print(f"{{name}}\\tscore: {{sum(r['COMET'] for r in rows) / len(rows):.4f}}")
if os.path.getsize(a.model) == 2:
    data = {{name: rows[:-1] for name, rows in data.items()}}
json.dump(data, open(a.to_json, "w", encoding="utf-8"), ensure_ascii=False, indent=4)
"""
HPARAMS = "class_identifier: regression_metric\npretrained_model: some/encoder\n"
REFERENCE = [f"the ship of line {i} sails at dawn" for i in range(30)]
SOURCE = [f"das Schiff der Zeile {i} fährt im Morgengrauen" for i in range(30)]


def value(source: str, line: str, reference: str | None = None) -> float:
    """What the program above says of a line."""
    return 1 / (2 + abs(len(source) - len(line))) + (0.25 if line == reference else 0)


def model(folder: Path, hparams: str = HPARAMS, checkpoint: str = "pickle") -> Path:
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints" / "model.ckpt").write_text(checkpoint)
    (folder / "hparams.yaml").write_text(hparams)
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two systems, a model and a program on the PATH, with a Python beside it that knows the version."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    for name, text in (("comet-score", PROGRAM), ("python", "#!/bin/sh\necho 2.2.7\n")):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    draw = random.Random(5)
    systems = {
        "a": [line[: draw.randint(9, 40)].strip() for line in REFERENCE],
        "b": [*REFERENCE[:20], *SOURCE[20:29], ""],
    }
    for name, lines in {"ref": REFERENCE, "src": SOURCE, **systems}.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    model(tmp_path / "wmt-da")
    return tmp_path


def lines_of(here: Path, name: str) -> list[str]:
    return (here / name).read_text(encoding="utf-8").split("\n")[:-1]


COMET = ("score", "ref", "--source", "src", "--comet", "wmt-da", "-q")


def test_the_system_score_is_the_mean_with_a_signature(nmt: Callable[..., Any], here: Path) -> None:
    values = [value(s, t, r) for s, t, r in zip(SOURCE, lines_of(here, "a"), REFERENCE, strict=True)]
    done = nmt(*COMET, "-i", "a", "-m", "chrf")
    assert done.out.splitlines()[1] == f"COMET {mean(values):.4f}  nrefs:1|model:wmt-da|version:2.2.7"
    data = json.loads(nmt(*COMET, "-i", "a", "--json", "--sentence").out)
    assert data["scores"][1]["score"] == pytest.approx(mean(values), abs=1e-15)
    assert data["scores"][1]["checkpoint"] == str(here / "wmt-da" / "checkpoints" / "model.ckpt")
    assert [row["COMET"] for row in data["sentences"]] == values
    sentences = nmt(*COMET, "-i", "a", "--sentence").out.splitlines()
    assert [line.split("\t")[1] for line in sentences] == [f"{number:.4f}" for number in values]


def test_systems_are_compared_in_tables_by_the_lines_values(nmt: Callable[..., Any], here: Path) -> None:
    means = [mean(value(s, t, r) for s, t, r in zip(SOURCE, lines_of(here, n), REFERENCE, strict=True)) for n in "ab"]
    for form, sign in (("text", ""), ("markdown", "|"), ("latex", "&")):
        out = nmt(*COMET, "-i", "a", "-i", "b", "--paired-ar", "--samples", "99", "--format", form).out
        for number in means:
            assert f"{number:.4f}" in out
        assert "p = 0.0100*" in out and sign in out and "nrefs:1|ar:99|seed:12345|model:wmt-da|version:2.2.7" in out


def test_intervals_and_groups_are_of_the_lines_values(nmt: Callable[..., Any], here: Path) -> None:
    (here / "tags").write_text("x\n" * 10 + "y\n" * 20)
    data = json.loads(nmt(*COMET, "-i", "b", "--by", "tags", "--confidence", "--samples", "200", "--json").out)
    values = [value(s, t, r) for s, t, r in zip(SOURCE, lines_of(here, "b"), REFERENCE, strict=True)]
    groups = [group["scores"]["b"]["COMET"] for group in data["by"][0]["groups"]]
    assert groups == [pytest.approx(mean(values[:10])), pytest.approx(mean(values[10:]))]
    interval = data["scores"][1]["confidence"]
    assert interval["mean"] == pytest.approx(mean(values), abs=0.03) and 0 < interval["half_width"] < 0.2
    assert "bs:200|seed:12345|model:wmt-da" in interval["signature"]


def test_a_line_that_occurs_twice_keeps_each_value(nmt: Callable[..., Any], here: Path) -> None:
    for name, lines in (("src", ["ab", "abcdef"]), ("a", ["xy", "xy"]), ("ref", ["z", "z"])):
        (here / name).write_text("".join(f"{line}\n" for line in lines))
    data = json.loads(nmt(*COMET, "-i", "a", "--sentence", "--json").out)
    assert [row["COMET"] for row in data["sentences"]] == [value("ab", "xy"), value("abcdef", "xy")]
    assert str(Valued("ab", 0.5)) == "ab" and Valued("ab", 0.5) == "ab"


def test_no_character_of_a_line_makes_two_lines_of_it(nmt: Callable[..., Any], here: Path) -> None:
    for name in ("src", "a", "ref"):
        (here / name).write_bytes("one\rtwo\u2028three\x0b\x85\n\nlast\n".encode())
    assert nmt(*COMET, "-i", "a").status == 0


def test_a_model_without_references_is_given_none_and_says_so(nmt: Callable[..., Any], here: Path) -> None:
    kinds = ("class_identifier: referenceless_regression_metric\n",)
    kinds += ("class_identifier: unified_metric\ninput_segments:\n- mt\n- src\nlayer: mix\n",)
    for i, text in enumerate(kinds):
        model(here / f"kiwi{i}", text)
        out = nmt("score", "ref", "ref", "--source", "src", "-i", "b", "--comet", f"kiwi{i}", "-q").out
        expected = mean(value(s, t) for s, t in zip(SOURCE, lines_of(here, "b"), strict=True))
        assert f"COMET {expected:.4f}  nrefs:0|model:kiwi{i}|" in out
    model(here / "unified", "class_identifier: unified_metric\ninput_segments:\n- mt\n- src\n- ref\n")
    assert find_model(here / "unified").references and not find_model(here / "kiwi1").references


def test_models_are_found_as_they_lie_and_named(tmp_path: Path) -> None:
    folder = model(tmp_path / "wmt22-comet-da")
    assert find_model(folder).name == "wmt22-comet-da" == find_model(folder / "checkpoints" / "model.ckpt").name
    cached = tmp_path / "models--Unbabel--wmt22-comet-da"
    model(cached / "snapshots" / "1a2b")
    assert find_model(cached).name == "Unbabel/wmt22-comet-da" == find_model(cached / "snapshots" / "1a2b").name
    assert find_model(folder).encoder == "some/encoder"
    (folder / "checkpoints" / "other.ckpt").touch()
    with pytest.raises(ModelError, match="holds 2 checkpoints"):
        find_model(folder)


def test_what_is_missing_is_named_with_the_command_that_brings_it(nmt: Callable[..., Any], here: Path) -> None:
    def said(*arguments: str) -> str:
        done = nmt("score", "ref", "-i", "a", *arguments)
        assert done.status == 1 and done.out == ""
        return str(done.err)

    source = ("--source", "src", "--comet")
    assert "pip install unbabel-comet" in said(*source, "wmt-da", "--comet-program", "no-such-program")
    gone = said(*source, "gone/folder").splitlines()
    assert gone[0] == "error: gone/folder: there is no such folder; COMET's models are never fetched from here"
    assert gone[1].startswith("hint: name a COMET model") and len(gone) == 2
    (here / "empty").mkdir()
    assert "empty: holds no checkpoint" in said(*source, "empty")
    (model(here / "bare") / "hparams.yaml").unlink()
    assert "hparams.yaml: is missing" in said(*source, "bare")
    two = nmt("score", "ref", "b", "-i", "a", *source, "wmt-da")
    assert two.status == 1 and "COMET compares with one reference, and 2 are named" in two.err
    assert nmt("score", "ref", "-i", "a", "--comet", "wmt-da").status == 2
    assert nmt("score", "ref", "-i", "a", "--comet-program", "x").status == 2


def test_a_model_that_is_missing_is_told_before_anything_is_read(nmt: Callable[..., Any], here: Path) -> None:
    done = nmt("score", "no-reference", "-i", "no-system", "--source", "no-source", "--comet", "gone")
    assert done.status == 1 and done.err.startswith("error: gone: ")


def test_a_program_that_fails_is_quoted_and_its_answer_is_counted(nmt: Callable[..., Any], here: Path) -> None:
    model(here / "broken", checkpoint="1")
    done = nmt("score", "ref", "-i", "a", "--source", "src", "--comet", "broken", "-q")
    assert done.status == 1 and done.out == ""
    assert "ended with status 1: Loading / OSError: cannot find the encoder" in done.err
    assert "hint: it runs offline: the encoder that broken is built on (some/encoder)" in done.err
    model(here / "short", checkpoint="12")
    assert "gave 29 scores for 30 lines" in nmt("score", "ref", "-i", "a", "--source", "src", "--comet", "short").err


def test_the_version_is_unknown_where_no_python_stands_beside(nmt: Callable[..., Any], here: Path) -> None:
    (here / "bin" / "python").unlink()
    assert "|version:unknown" in nmt(*COMET, "-i", "a").out
    (here / "elsewhere").mkdir()
    (here / "bin" / "comet-score").rename(here / "elsewhere" / "scorer")
    done = nmt("score", "ref", "--source", "src", "-i", "a", "--comet", "wmt-da", "--comet-program", "elsewhere/scorer")
    assert "COMET 0." in done.out and "COMET: elsewhere/scorer scores 1 × 30 lines" in done.err
