"""`nmt run` and the commands of single stages, as typed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from nmt.stages.run import locked
from nmt.stages.stage import RunFolder

SETS = [("", "train"), ("valid-", "valid"), ("test-", "test")]
STAGES = ["preprocess", "bpe", "train", "average", "translate", "score"]


def test_one_command_leads_from_raw_text_to_a_table_of_scores_and_back_to_translation(nmt, toy: Path) -> None:
    ended = nmt("run", "toy.toml")
    assert ended.status == 0
    rows = [line.split() for line in ended.out.splitlines()]
    assert [row[:2] for row in rows[:3]] == [["test", "BLEU"], ["test", "chrF2"], ["test", "TER"]]
    assert all("version:" in row[3] for row in rows[:3])
    places = {row[0]: Path(row[1]) for row in rows[4:]}
    assert set(places) == {"model", "translations", "scores", "checkpoints", "journal", "validation", "recipe"}
    assert all(path.exists() for path in places.values())
    for stage in STAGES:
        assert f"{stage}: has not run yet" in ended.err and f"{stage}: done in " in ended.err
    assert "next: nmt translate runs/toy" in ended.err
    assert "\r" not in ended.err and "\x1b" not in ended.err

    again = nmt("run", "toy.toml")
    assert again.out == ended.out
    assert again.err.splitlines()[:6] == [f"{stage}: nothing to do" for stage in STAGES]

    quiet = nmt("run", "toy.toml", "--quiet")
    assert (quiet.out, quiet.err) == (ended.out, "")

    translated = nmt("translate", "runs/toy", "--input", "test.aa", "--quiet")
    assert translated.status == 0 and translated.err == ""
    assert translated.out == Path("runs/toy/translations/test.bb").read_text()

    scored = nmt("score", "test.bb", "--input", "runs/toy/translations/test.bb", "--language", "bb")
    assert scored.out.split()[:2] == rows[0][1:3], "the table's score is that of nmt score"

    dry = nmt("run", "toy.toml", "--dry-run", "--set", "train.steps=6")
    assert dry.out.splitlines() == [
        "preprocess: nothing to do",
        "bpe: nothing to do",
        "train: train.steps changed 4 → 6",
        "average: train runs before it, and may give other results",
        "translate: average runs before it, and may give other results",
        "score: average runs before it",
    ]
    both = nmt("run", "toy.toml", "--dry-run", "--set", "train.steps=6", "--set", "bpe.size=290").out
    assert both.splitlines()[2] == (
        "train: train.steps changed 4 → 6; bpe runs before it, and may give other results; "
        "checkpoints of other results can't be gone on from: --force train starts over"
    )
    assert nmt("run", "runs/toy/recipe.toml", "--dry-run").out.count("nothing to do") == 6, "the kept recipe is one"


@pytest.mark.parametrize("stage", ["preprocess", "bpe"])
def test_a_stage_command_runs_what_stands_before_it_first(nmt, toy: Path, stage: str) -> None:
    ended = nmt(stage, "toy.toml", "--run-dir", "elsewhere")
    assert ended.status == 0 and ended.out == ""
    done = [line.partition(":")[0] for line in ended.err.splitlines() if ": done in" in line]
    assert done == STAGES[: STAGES.index(stage) + 1]
    assert (toy / "elsewhere" / stage / "manifest.json").exists()
    assert not (toy / "runs").exists()


def test_overrides_reach_the_stage_and_are_kept(nmt, toy: Path) -> None:
    assert nmt("preprocess", "toy.toml", "--set", "preprocess.max_words=3", "--set", "seed=5").status == 0
    report = json.loads(Path("runs/toy/preprocess/report.json").read_text())
    assert report["corpora"][0]["kept"] < report["corpora"][0]["read"]
    assert "seed = 5" in Path("runs/toy/recipe.toml").read_text()


def test_mistakes_in_the_recipe_stop_before_anything_is_written(nmt, toy: Path) -> None:
    with Path("toy.toml").open("a") as file:
        file.write("\n[train.extra]\nlerning = 1\n")
    ended = nmt("train", "toy.toml", "--set", "model.widht=3")
    assert ended.status == 1 and ended.out == ""
    assert "--set model.widht: [model] widht is not a known key (did you mean width?)" in ended.err
    assert "toy.toml:47: [train] extra is not a known key" in ended.err
    assert not (toy / "runs").exists()


@pytest.mark.parametrize("command", ["run", "train"])
def test_parts_to_freeze_that_are_not_there_are_told_before_anything_runs(nmt, toy: Path, command: str) -> None:
    ended = nmt(command, "toy.toml", "--set", 'train.freeze=["encodr"]')
    assert ended.status == 1 and "'encodr' is no part of this model" in ended.err
    assert not list(Path("runs").glob("*/*/*"))


def test_a_missing_recipe_is_an_error(nmt, toy: Path) -> None:
    ended = nmt("run", "none.toml")
    assert ended.status == 1
    assert ended.err.startswith("error: none.toml: cannot be read: No such file or directory\nhint: ")


def test_forcing_a_stage_that_is_not_to_run_is_wrong_usage(nmt, toy: Path) -> None:
    assert nmt("run", "toy.toml", "--to", "bpe", "--force", "train").status == 2


def test_pairs_with_a_blank_side_are_dropped_as_pairs_and_counted(nmt, toy: Path) -> None:
    Path("train.aa").write_bytes(b"bal\n\nkor\ndem\n\xe2\x80\x8b\n")
    Path("train.bb").write_bytes(b"bal\nban\n\xe3\x80\x80\ndem\nx\n")
    ended = nmt("preprocess", "toy.toml")
    assert ended.status == 0 and "read 5, kept 2, dropped 3 (empty 3)" in ended.err
    for side in ("source", "target"):
        assert Path(f"runs/toy/preprocess/train.{side}").read_text() == "bal\ndem\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["preprocess", "toy.toml"],
        ["bpe", "toy.toml"],
        ["recipe", "new", *(f"--{s}{n}={f}.{x}" for s, f in SETS for n, x in (("source", "aa"), ("target", "bb")))],
        ["recipe", "check", "toy.toml"],
        ["download", "toy.toml"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_quiet_commands_say_nothing(nmt, toy: Path, arguments: list[str]) -> None:
    ended = nmt(*arguments, "--quiet")
    assert (ended.status, ended.out, ended.err) == (0, "", "")


def test_invalid_utf8_names_file_line_and_byte_and_leaves_nothing_half_done(nmt, toy: Path) -> None:
    data = Path("train.aa").read_bytes().splitlines(keepends=True)
    Path("train.aa").write_bytes(b"".join([*data[:2], b"caf\xe9\n", *data[3:]]))
    ended = nmt("preprocess", "toy.toml")
    assert ended.status == 1
    assert "train.aa:3: byte 4 (0xE9) is not valid UTF-8" in ended.err
    assert not list(Path("runs/toy").rglob("train.source")) and not list(Path("runs/toy").rglob("*.partial"))
    assert nmt("preprocess", "toy.toml", "--set", "preprocess.on_bad_bytes=replace").status == 0


RISING = ("--set", "train.schedule={kind='linear', warmup_steps=4}")


@pytest.mark.parametrize("command", [("run",), ("train",), ("run", "--dry-run")], ids=" ".join)
def test_a_rate_that_would_never_fall_is_refused_before_anything_runs(nmt, toy: Path, command: tuple[str, ...]) -> None:
    ended = nmt(*command, "toy.toml", *RISING)
    assert ended.status == 1 and ended.out == "" and not (toy / "runs").exists()
    problem, hint = ended.err.splitlines()
    assert problem in nmt("recipe", "check", "toy.toml", *RISING).err.splitlines()
    fitting = hint.partition("--set ")[2]
    assert nmt("recipe", "check", "toy.toml", *RISING, "--set", fitting).status == 0
    assert nmt("run", "toy.toml", *RISING, "--to", "bpe", "--quiet").status == 0, "no rate matters there"


@pytest.mark.parametrize("found", [None, "aa\nbb\n"], ids=["missing", "unequal"])
def test_a_dry_run_names_the_folder_and_problems_with_files(nmt, toy: Path, found: str | None) -> None:
    well = nmt("run", "toy.toml", "--dry-run")
    assert (well.status, well.err.splitlines()[0]) == (0, "run folder: runs/toy")
    (toy / "train.bb").unlink()
    if found:
        (toy / "train.bb").write_text(found)
    ended = nmt("run", "toy.toml", "--dry-run")
    assert (ended.status, ended.out) == (1, well.out)
    (problem,) = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert problem in nmt("recipe", "check", "toy.toml").err.splitlines()


def test_a_dry_run_beside_a_run_names_the_process_that_writes_the_folder_and_leaves_it_alone(nmt, toy: Path) -> None:
    alone = nmt("run", "toy.toml", "--dry-run")
    with locked(RunFolder(toy / "runs/toy")):
        beside = nmt("run", "toy.toml", "--dry-run")
        assert (beside.status, beside.out) == (0, alone.out)
        assert f"runs/toy: process {os.getpid()} is writing this run folder" in beside.err
    assert nmt("run", "toy.toml", "--dry-run").err == alone.err


def test_a_recipe_that_is_none_is_told_from_what_was_meant(nmt, toy: Path) -> None:
    assert "hint: did you mean toy.toml?" in nmt("run", "tyo.toml").err
    assert "hint: check the path" in nmt("run", "sample.toml").err
    (toy / "recipes").mkdir()
    (toy / "recipes" / "sample.toml").touch()
    assert "hint: did you mean recipes/sample.toml?" in nmt("run", "sample").err
    (toy / "runs").mkdir()
    assert "hint: a recipe is a file" in nmt("run", "runs").err
    (toy / "runs" / "recipe.toml").touch()
    assert "hint: a recipe is a file: runs/recipe.toml is one" in nmt("run", "runs").err


def test_a_recipe_without_downloads_says_so(nmt, toy: Path) -> None:
    ended = nmt("download", "toy.toml")
    assert ended.status == 0 and ended.err.startswith("toy.toml: names nothing to download")


def test_text_behind_a_model_is_told_from_a_second_model(nmt, toy: Path) -> None:
    ended = nmt("translate", "runs/toy", "test.aa")
    assert ended.status == 1 and ended.err.endswith("hint: text to translate is named by --input test.aa\n")
