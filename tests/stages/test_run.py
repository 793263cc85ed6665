"""Stages run when they are stale and say why; what is interrupted is gone on with; one process to a run folder."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from nmt.errors import DataError, OutputError, RecipeError, TrainingError
from nmt.events import Event, StageFinished, StageFresh, StageStarted
from nmt.recipe import dump, read
from nmt.stages.manifest import read_manifest
from nmt.stages.run import Interrupted, choose, locked, plan, run_stages, where
from nmt.stages.stage import STAGES, RunFolder

RECIPE = """\
name = "toy"
languages = {source = "aa", target = "bb"}
bpe = {size = 290}
average = {count = 2}
translate = {beam = 1, max_extra_tokens = 2}
[[data.train]]
source = "train.aa"
target = "train.bb"
[data.valid]
source = "valid.aa"
target = "valid.bb"
[[data.test]]
source = "test.aa"
target = "test.bb"
[model]
width = 8
feedforward = 8
encoder_layers = 1
decoder_layers = 1
attention.heads = 2
[train]
steps = 4
curves = false
batch_tokens = 256
threads = 1
device = "cpu"
save_every = 2
validate_every = 4
valid_lines = 2
schedule.kind = "constant"
"""
NAMES = list(STAGES)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a toy corpus, toy.toml, and its finished run in `run`."""
    folder = tmp_path_factory.mktemp("finished")
    generator = random.Random(3)
    for name, lines in (("train", 60), ("valid", 4), ("test", 3)):
        sentences = [[generator.choice("kltr") + generator.choice("aeiou") for _ in range(4)] for _ in range(lines)]
        (folder / f"{name}.aa").write_text("".join(f"{name} {' '.join(s)}\n" for s in sentences))
        (folder / f"{name}.bb").write_text("".join(f"{' '.join(s[::-1])} {name}\n" for s in sentences))
    (folder / "toy.toml").write_text(RECIPE)
    assert ran(folder) == NAMES
    return folder


@pytest.fixture
def toy(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished folder that a test may change. Files keep their times."""
    return Path(shutil.copytree(finished, tmp_path / "toy"))


def run_folder(toy: Path) -> RunFolder:
    return RunFolder(toy / "run")


def ran(toy: Path, overrides: Sequence[str] = (), force: Sequence[str] = (), **bounds: str) -> list[str]:
    """Run what is stale; the names of the stages that ran."""
    recipe = read(toy / "toy.toml", overrides)
    events = list(run_stages(recipe, run_folder(toy), choose(**bounds), force))
    assert [e.stage for e in events if isinstance(e, StageStarted)] == [
        e.stage for e in events if isinstance(e, StageFinished)
    ]
    fresh = {e.stage for e in events if isinstance(e, StageFresh)}
    started = [e.stage for e in events if isinstance(e, StageStarted)]
    assert fresh.isdisjoint(started) and len(fresh) + len(started) == len(choose(**bounds))
    return started


def reasons(toy: Path, overrides: Sequence[str] = (), force: Sequence[str] = ()) -> dict[str, list[str]]:
    """Why each stale stage would run."""
    planned = plan(read(toy / "toy.toml", overrides), run_folder(toy), choose(), force)
    return {stage.name: why for stage, why in planned if why}


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_finished_run_has_nothing_to_do_and_changes_nothing(toy: Path) -> None:
    before = contents(toy)
    assert reasons(toy) == {}
    assert ran(toy) == []
    after = contents(toy)
    for name in ("run/.lock", "run/recipe.toml"):
        before.pop(name), after.pop(name)
    assert after == before


def test_the_run_folder_keeps_the_resolved_recipe_which_is_one(toy: Path) -> None:
    assert ran(toy, ["translate.beam=1"], last="preprocess") == []
    kept = read(run_folder(toy).recipe)
    assert kept == read(toy / "toy.toml")
    assert run_folder(toy).recipe.read_text() == dump(kept)


def test_nothing_run_yet_is_the_reason_for_all(toy: Path) -> None:
    shutil.rmtree(toy / "run")
    assert reasons(toy) == {name: ["has not run yet"] for name in NAMES}
    assert not (toy / "run").exists(), "planning leaves no trace"


@pytest.mark.parametrize(
    ("override", "stage", "reason"),
    [
        ("preprocess.max_words=9", "preprocess", "preprocess.max_words changed 250 → 9"),
        ("bpe.size=280", "bpe", "bpe.size changed 290 → 280"),
        ("train.steps=6", "train", "train.steps changed 4 → 6"),
        ("train.clip_norm=1.0", "train", "train.clip_norm changed null → 1.0"),
        ("average.count=1", "average", "average.count changed 2 → 1"),
        ("translate.beam=2", "average", "translate.beam changed 1 → 2"),
        ("score.metrics=[{kind='chrf'}]", "score", 'score.metrics.0.kind changed "bleu" → "chrf"'),
    ],
)
def test_the_changed_setting_is_the_reason(toy: Path, override: str, stage: str, reason: str) -> None:
    found = reasons(toy, [override])
    assert next(iter(found)) == stage, "no stage before it is touched"
    assert reason in found[stage]


@pytest.mark.parametrize("override", ["train.threads=2", "train.device=auto", "name=other", "data.test.0.name=test"])
def test_what_changes_no_result_makes_nothing_stale(toy: Path, override: str) -> None:
    assert reasons(toy, [override]) == {}


def test_more_steps_go_on_from_the_last_checkpoint(toy: Path) -> None:
    assert ran(toy, ["train.steps=6"]) == ["train", "average", "translate", "score"]
    assert [p.name for p in sorted(run_folder(toy).checkpoints.glob("step-*"))][-3:] == [
        "step-00000002",
        "step-00000004",
        "step-00000006",
    ]
    assert ran(toy, ["train.steps=6"]) == []


def test_changed_bytes_of_an_input_are_the_reason_and_a_new_time_alone_is_not(toy: Path) -> None:
    os.utime(toy / "train.aa", (1, 1))
    assert reasons(toy) == {}
    with (toy / "test.bb").open("a") as file:
        file.write("one more\n")
    with (toy / "test.aa").open("a") as file:
        file.write("one more\n")
    found = reasons(toy)
    assert f"data.test.0.target.0 changed: {toy / 'test.bb'}" in found["score"]
    assert f"data.test.0.source changed: {toy / 'test.aa'}" in found["translate"]


def test_a_stage_whose_inputs_come_out_the_same_stops_the_wave(toy: Path) -> None:
    assert ran(toy, force=["preprocess"]) == ["preprocess"]


def test_corpora_may_move(toy: Path) -> None:
    (toy / "elsewhere").mkdir()
    for file in toy.glob("t*.??"):
        file.rename(toy / "elsewhere" / file.name)
    text = RECIPE
    for name in ("train", "test"):
        text = text.replace(f'"{name}.', f'"elsewhere/{name}.')
    (toy / "toy.toml").write_text(text)
    assert reasons(toy) == {}


def test_a_missing_output_is_the_reason(toy: Path) -> None:
    (run_folder(toy).translations / "test.bb").unlink()
    assert reasons(toy)["translate"] == ["translations/test.bb is missing or was changed"]
    assert ran(toy) == ["translate"], "the same translation comes out, so the scores stand"


def test_scores_come_back_into_the_models_card_after_averaging_anew(toy: Path) -> None:
    card = run_folder(toy).model / "README.md"
    assert "BLEU" in card.read_text()
    shutil.rmtree(run_folder(toy).model)
    assert set(reasons(toy)) == {"average", "translate", "score"}
    assert ran(toy) == ["average", "score"], "the same weights come out, so the translations stand"
    assert "BLEU" in card.read_text()
    assert ran(toy, only="average", force=["average"]) == ["average"]
    assert reasons(toy) == {"score": ["average ran anew"]}


def test_a_damaged_manifest_runs_the_stage_anew(toy: Path) -> None:
    (run_folder(toy).scores / "manifest.json").write_text("{")
    assert reasons(toy) == {"score": ["did not finish"]}
    assert ran(toy) == ["score"]


def test_manifests_tell_what_went_in_and_what_came_out(toy: Path) -> None:
    data = json.loads((run_folder(toy).preprocess / "manifest.json").read_text())
    assert data["finished"] and data["nmt"] and data["seconds"] >= 0
    assert data["inputs"]["data.train.0.source"]["path"].endswith("train.aa")
    assert "preprocess/train.source" in data["outputs"]
    before, after = (read_manifest(STAGES[name], run_folder(toy)) for name in ("preprocess", "bpe"))
    assert before and after and after.before == before.result()


def test_bounds_choose_stages(toy: Path) -> None:
    assert ran(toy, ["train.steps=5"], first="average") == []
    assert ran(toy, force=["bpe"], only="bpe") == ["bpe"]
    assert [stage.name for stage in choose("bpe", "train")] == ["bpe", "train"]
    with pytest.raises(RecipeError, match="the other way"):
        choose("train", "bpe")


def test_a_stage_without_what_it_reads_names_what_is_missing(toy: Path) -> None:
    shutil.rmtree(toy / "run")
    with pytest.raises(RecipeError, match="bpe reads what preprocess writes, which has not finished"):
        ran(toy, only="bpe")


def test_all_missing_files_are_named_at_once(toy: Path) -> None:
    for name in ("train.aa", "valid.bb"):
        (toy / name).unlink()
    with pytest.raises(DataError) as caught:
        ran(toy)
    assert [line.partition(":")[0] for line in caught.value.problem.splitlines()] == [
        str(toy / "train.aa"),
        str(toy / "valid.bb"),
    ]


def test_checkpoints_of_another_model_are_refused_before_anything_runs(toy: Path) -> None:
    before = contents(run_folder(toy).path)
    with pytest.raises(TrainingError, match="model.width 8 → 16") as caught:
        ran(toy, ["model.width=16", "preprocess.max_words=99"])
    assert "--force train" in caught.value.hint and "--run-dir" in caught.value.hint
    assert contents(run_folder(toy).path) == before


def test_languages_and_cleaning_belong_to_the_model(toy: Path) -> None:
    for override in ("languages.target=cc", "preprocess.normalization=nfkc"):
        with pytest.raises(TrainingError, match=override.partition("=")[0]):
            ran(toy, [override])


def test_forcing_train_sets_the_old_checkpoints_aside(toy: Path) -> None:
    old = contents(run_folder(toy).checkpoints)
    assert ran(toy, ["model.width=16"], force=["train"], last="train") == ["train"]
    kept = contents(toy / "run" / "checkpoints.previous")
    assert kept.pop("journal.jsonl")
    assert kept.pop("validation/step-00000004.tsv")
    assert kept == old
    assert (run_folder(toy).checkpoints / "last.json").exists()


def test_training_that_is_asked_to_end_saves_and_goes_on_later(toy: Path) -> None:
    recipe = read(toy / "toy.toml", ["train.steps=500"])
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        asked = False
        with pytest.raises(Interrupted) as stop:
            for event in run_stages(recipe, run_folder(toy), choose(only="train")):
                if type(event).__name__ == "Saved" and not asked:
                    asked = True
                    os.kill(os.getpid(), number)
        assert stop.value.status == status
        manifest = read_manifest(STAGES["train"], run_folder(toy))
        assert manifest and not manifest.finished
        assert reasons(toy, ["train.steps=500"])["train"] == ["did not finish"]
    reached = json.loads((run_folder(toy).checkpoints / "last.json").read_text())["step"]
    steps = int(reached.removeprefix("step-"))
    assert 4 < steps < 500
    assert ran(toy, [f"train.steps={steps + 1}"], only="train") == ["train"]


@pytest.mark.parametrize("stage", ["preprocess", "bpe", "average", "translate", "score"])
def test_a_stage_that_breaks_off_anywhere_runs_anew_and_ends_the_same(toy: Path, stage: str) -> None:
    ran(toy, force=[name for name in NAMES if name != "train"])  # in this folder, whose name some files hold
    whole = contents(run_folder(toy).path)
    recipe = read(toy / "toy.toml")
    events = run_stages(recipe, run_folder(toy), choose(only=stage), [stage])
    next(events)
    next(events, None)
    events.close()  # as an exception within the stage would
    if manifest := read_manifest(STAGES[stage], run_folder(toy)):
        assert not manifest.finished or stage == "score"
    ran(toy)
    after = contents(run_folder(toy).path)
    volatile = ("manifest.json", ".lock", "journal.jsonl")
    assert {k: v for k, v in after.items() if not k.endswith(volatile)} == {
        k: v for k, v in whole.items() if not k.endswith(volatile)
    }
    assert not [name for name in after if ".partial" in name]


def test_a_second_process_is_refused_by_name(toy: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from nmt.stages.run import locked; from nmt.stages.stage import RunFolder\n"
        f"with locked(RunFolder(Path({str(toy / 'run')!r}))): print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout and other.stdout.readline() == "held\n"
        with pytest.raises(OutputError, match=f"process {other.pid} is writing this run folder"):
            ran(toy)
        other.communicate("")
    assert ran(toy) == []


def test_the_lock_is_given_back_after_an_error(toy: Path) -> None:
    run = run_folder(toy)
    with pytest.raises(ValueError), locked(run):
        raise ValueError
    with locked(run):
        pass


def test_a_run_folder_that_cannot_be_made_is_an_error(toy: Path) -> None:
    (toy / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"), locked(RunFolder(toy / "file" / "run")):
        pass


def test_the_run_folder_is_named_after_the_recipe(toy: Path) -> None:
    recipe = read(toy / "toy.toml")
    assert where(recipe, None).path == Path("runs/toy")
    assert where(recipe, toy).path == toy


def test_large_inputs_are_not_read_again_when_size_and_time_are_the_same(toy: Path) -> None:
    ran(toy, force=["preprocess"])  # manifests know files by their paths
    file = toy / "train.aa"
    status = file.stat()
    data = file.read_bytes()
    file.write_bytes(data.replace(b"ka", b"ko"))  # the same size; the time is put back
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert reasons(toy) == {}
    os.utime(file, (5, 5))
    assert "data.train.0.source changed" in reasons(toy)["preprocess"][0]


def test_a_forced_training_that_was_interrupted_goes_on_and_nothing_trained_is_lost(toy: Path) -> None:
    ran(toy, force=["train"], last="train")
    trained = contents(run_folder(toy).checkpoints)
    folder = run_folder(toy).path

    def forced(*overrides: str) -> Iterator[Event]:
        return run_stages(read(toy / "toy.toml", overrides), run_folder(toy), choose(last="train"), ["train"])

    before = len(list(folder.glob("checkpoints.previous*")))
    events = forced("train.steps=40")
    next(event for event in events if type(event).__name__ == "Saved")
    events.close()  # as a kill would end it
    told = [getattr(event, "text", "") for event in forced("train.steps=40")]
    assert any(text.startswith("going on from") for text in told)
    set_aside = sorted(folder.glob("checkpoints.previous*"))
    assert len(set_aside) == before + 1
    assert any(trained.items() <= contents(path).items() for path in set_aside)
    list(forced())
    assert len(list(folder.glob("checkpoints.previous*"))) == before + 2


def test_what_a_killed_process_left_is_removed_and_never_counted(toy: Path) -> None:
    left = [run_folder(toy).path / ".recipe.toml.1.partial", run_folder(toy).shards / ".train.source.1.partial"]
    for path in left:
        path.write_bytes(b"half")
    assert ran(toy, force=["bpe"], last="bpe") == ["bpe"]
    assert not any(path.exists() for path in left)
    assert ".partial" not in (run_folder(toy).bpe / "manifest.json").read_text()


def test_a_changed_byte_in_the_shards_is_found_before_training(toy: Path) -> None:
    shard = run_folder(toy).shards / "train.target"
    data = bytearray(shard.read_bytes())
    data[-1] ^= 1
    shard.write_bytes(data)
    with pytest.raises(DataError, match="train.target"):
        ran(toy, ["train.steps=6"], only="train")
