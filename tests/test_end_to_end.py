"""From raw text to scores with `nmt run`, and back: every way to the same translation and score gives the same."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tasks
from nmt.cli import main

from nmt.stages.stage import STAGES, RunFolder
from nmt.train.journal import read_journal

SETTINGS = """\
steps = 160
batch_tokens = 512
validate_every = 80
save_every = 40
valid_beam = 3
best_by = "chrf"
schedule = { kind = "constant", peak = 1e-2 }

[model]
width = 32
feedforward = 64
encoder_layers = 1
decoder_layers = 1
attention.heads = 2

[average]
count = 2

[translate]
beam = 2
length_penalty = "average:1"
"""


class Work:
    """A recipe and its run, and commands on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.recipe = tasks.write(folder, "copy", SETTINGS, train=600, held_out=12, longest=4)
        self.run = folder / "run"
        unseen = folder / "valid.bb"  # the raw reference is what is scored, not what its pieces decode to
        unseen.write_text(unseen.read_text().replace("bal", "b\u00e4\u0142\u2603"), encoding="utf-8")

    def nmt(self, *arguments: object) -> None:
        assert main([*map(str, arguments), "--quiet"]) == 0

    def contents(self) -> dict[str, bytes]:
        volatile = {".lock", "recipe.toml"}
        paths = (path for path in sorted(self.run.rglob("*")) if path.is_file() and path.name not in volatile)
        return {str(path.relative_to(self.run)): path.read_bytes() for path in paths}

    def translated(self, model: Path, source: str, *options: object) -> bytes:
        self.nmt("translate", model, "--input", self.folder / source, "--output", self.folder / "out", *options)
        return (self.folder / "out").read_bytes()


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    work = Work(tmp_path_factory.mktemp("work"))
    work.nmt("run", work.recipe, "--run-dir", work.run)
    return work


def stage_scores(work: Work) -> list[tuple[float, str]]:
    (entry,) = json.loads((work.run / "scores" / "scores.json").read_text(encoding="utf-8"))["sets"]
    return [(score["score"], score["signature"]) for score in entry["scores"]]


def command_scores(
    work: Work, hypothesis: Path, reference: str, capsys: pytest.CaptureFixture[str]
) -> dict[str, tuple]:
    capsys.readouterr()
    metrics = [part for name in ("bleu", "chrf", "ter") for part in ("--metric", name)]
    work.nmt("score", work.folder / reference, "--input", hypothesis, "--language", "bb", "--json", *metrics)
    found = json.loads(capsys.readouterr().out)["scores"]
    return {score["name"]: (score["score"], score["signature"]) for score in found}


def test_a_run_leaves_the_results_of_all_stages(work: Work) -> None:
    for stage in STAGES.values():
        assert json.loads(stage.manifest(RunFolder(work.run)).read_text())["finished"]
    assert len(stage_scores(work)) == 3


def test_translating_the_raw_test_source_gives_the_stages_translations(work: Work) -> None:
    expected = (work.run / "translations" / "test.bb").read_bytes()
    assert len(set(expected.split(b"\n"))) > 6, "translations that differ: otherwise this proves little"
    assert work.translated(work.run, "test.aa") == expected
    assert work.translated(work.run / "model", "test.aa") == expected


def test_the_stages_scores_are_those_of_the_command(work: Work, capsys: pytest.CaptureFixture[str]) -> None:
    found = command_scores(work, work.run / "translations" / "test.bb", "test.bb", capsys)
    assert list(found.values()) == stage_scores(work)
    assert found["BLEU"][0] > 5


def test_validation_is_translating_and_scoring_that_checkpoint(work: Work, capsys: pytest.CaptureFixture[str]) -> None:
    validations = [line for line in read_journal(work.run / "journal.jsonl") if line["event"] == "validation"]
    assert [line["step"] for line in validations] == [80, 160]
    for line in validations:
        checkpoint = work.run / "checkpoints" / f"step-{line['step']:08d}"
        work.translated(checkpoint, "valid.aa", "--beam", 3)
        found = command_scores(work, work.folder / "out", "valid.bb", capsys)
        assert (line["bleu"], line["chrf"]) == (found["BLEU"][0], found["chrF2"][0])
        assert line["chrf"] > 5


def test_a_second_run_changes_nothing(work: Work, capsys: pytest.CaptureFixture[str]) -> None:
    before = work.contents()
    assert main(["run", str(work.recipe), "--run-dir", str(work.run)]) == 0
    assert capsys.readouterr().err.count(": nothing to do\n") == len(STAGES)
    assert work.contents() == before


def test_a_full_disk_ends_each_stage_with_a_line_and_the_run_goes_on_once_there_is_room(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = (
        SETTINGS.replace("steps = 160", "steps = 8")
        .replace("every = 80", "every = 4")
        .replace("every = 40", "every = 4")
    )
    recipe = tasks.write(tmp_path, "copy", quick, train=300, held_out=12, longest=4)
    command = ["run", str(recipe), "--quiet", "--run-dir"]
    largest, unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    failed = []
    for room in (900, *range(3000, 9000, 500), 160_000, 230_000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, unlimited))
        try:
            assert main([*command, str(tmp_path / "run")]) == 1
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, unlimited))
        first, second = capsys.readouterr().err.splitlines()
        assert "cannot be written" in first and "File too large" in first and second.startswith("hint: ")
        failed.append(first.removeprefix(f"error: {tmp_path}/run/").partition(".partial")[0].partition("/")[0])
        assert not [path for path in tmp_path.rglob("*") if ".partial" in path.name]
    assert {"preprocess", "bpe", "checkpoints"} <= set(failed), failed
    assert main([*command, str(tmp_path / "run")]) == main([*command, str(tmp_path / "other")]) == 0
    for name in ("model/model.safetensors", "translations/test.bb", "checkpoints/last.json"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


def test_the_model_folder_alone_translates_in_another_place_and_locale(work: Work, tmp_path: Path) -> None:
    shutil.copytree(work.run / "model", tmp_path / "elsewhere")
    command = [sys.executable, "-m", "nmt", "translate", "elsewhere", "--device", "cpu", "--threads", "1"]
    with (work.folder / "test.aa").open("rb") as source:
        ended = subprocess.run(
            command, stdin=source, capture_output=True, cwd=tmp_path, env={**os.environ, "LC_ALL": "C"}, check=True
        )
    assert ended.stdout == (work.run / "translations" / "test.bb").read_bytes()
