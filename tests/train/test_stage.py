"""The stage: from a prepared run folder to checkpoints, and on from wherever it was left."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from train.runs import prepared, recipe

from nmt.checkpoint.layout import BEST, LAST, pointed, read_validation
from nmt.checkpoint.load import load_translator
from nmt.errors import ModelError, NmtError, TrainingError
from nmt.events import Caution, Event, Notice
from nmt.files import read_json, write_json
from nmt.score.config import BleuConfig, ChrfConfig
from nmt.score.metric import score_all
from nmt.stages import average, train
from nmt.stages.run import choose, run_stages
from nmt.stages.stage import RunFolder
from nmt.train.events import Saved, Step, Stopped, Validation
from nmt.train.journal import read_journal
from nmt.train.state import State, read_state

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def before_training(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    prepared(folder)
    return folder


@pytest.fixture
def folder(before_training: Path, tmp_path: Path) -> Path:
    shutil.copytree(before_training, tmp_path / "toy")
    return tmp_path / "toy"


def trained(folder: Path, *changes: str) -> list[Event]:
    return list(train.run(recipe(folder, *changes), RunFolder(folder / "run")))


def contents(folder: Path) -> dict[str, bytes]:
    files = [*folder.rglob("*.safetensors"), *folder.glob("run/checkpoints/*.json"), *folder.rglob("validation.json")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(files)}


def test_training_saves_validates_and_tells_its_journal(folder: Path) -> None:
    events = trained(folder)
    assert [event.step for event in events if isinstance(event, Step)] == list(range(1, 13))
    assert [event.step for event in events if isinstance(event, Validation)] == [5, 10, 12]
    assert {4, 8, 12} <= {event.step for event in events if isinstance(event, Saved)}
    assert isinstance(events[-1], Stopped) and not events[-1].interrupted
    journal = list(read_journal(folder / "run" / "journal.jsonl"))
    assert sum(line.get("steps", 0) for line in journal if line["event"] == "step") == 12
    assert [line["step"] for line in journal if line["event"] == "validation"] == [5, 10, 12]
    losses = [event.loss for event in events if isinstance(event, Step)]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(("language", "tokenizer"), [("de", "13a"), ("zh", "zh")])
def test_validations_scores_are_those_of_translating_and_scoring_the_same_text(
    language: str, tokenizer: str, folder: Path
) -> None:
    changes = ("train.valid_beam=2", "train.steps=40", "train.schedule.peak=1e-2", f"languages.target={language}")
    trained(folder, *changes)
    last = pointed(folder / "run" / "checkpoints", LAST)
    measured = read_validation(last)
    sources = (folder / "valid.en").read_text().splitlines()
    references = (folder / "valid.de").read_text().splitlines()
    hypotheses = load_translator(last, device="cpu").translate(sources, beam=2)
    bleu, chrf = score_all(hypotheses, [references], [BleuConfig(), ChrfConfig()], language)
    assert f"tok:{tokenizer}|" in bleu.signature
    assert (measured["bleu"], measured["chrf"]) == (bleu.value, chrf.value)
    assert chrf.value > 0


def test_every_checkpoint_and_the_average_translate_alone(folder: Path) -> None:
    trained(folder)
    list(average.run(recipe(folder), RunFolder(folder / "run")))
    last = pointed(folder / "run" / "checkpoints", LAST)
    shutil.rmtree(last / "resume")
    for model in (last, folder / "run" / "model"):
        alone = folder / "alone"
        shutil.copytree(model, alone)
        assert len(load_translator(alone, device="cpu").translate(["abc", "", "def abc"])) == 3
        shutil.rmtree(alone)
    assert (folder / "run" / "model" / "README.md").is_file()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_ends_and_the_same_call_goes_on(number: int, folder: Path, tmp_path: Path) -> None:
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    events = []
    for event in train.run(recipe(folder), RunFolder(folder / "run")):
        events.append(event)
        if isinstance(event, Step) and event.step == 6:
            os.kill(os.getpid(), number)
    assert isinstance(events[-1], Stopped) and events[-1].interrupted and events[-1].step == 6
    assert pointed(folder / "run" / "checkpoints", LAST).name == "step-00000006"
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers
    rest = trained(folder)
    assert [event.step for event in rest if isinstance(event, Step)] == list(range(7, 13))
    unbroken = tmp_path / "unbroken"
    shutil.copytree(folder, unbroken)
    shutil.rmtree(unbroken / "run" / "checkpoints")
    trained(unbroken)
    assert contents(folder) == contents(unbroken)


def test_a_training_leaves_what_people_read_and_says_in_one_line_how_it_went(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    board = find_spec("tensorboard") is not None
    changes = ("train.curves=true", "train.valid_examples=4", f"train.tensorboard={str(board).lower()}")
    trained(folder, "train.steps=7")
    run = folder / "run"
    (run / "validation" / "step-00000099.tsv").touch()  # of an attempt that was lost
    *told, line, places, stopped = trained(folder, *changes)
    assert not any(isinstance(event, Caution) for event in told)  # none of these keys changes a training
    assert isinstance(line, Notice) and isinstance(places, Notice) and isinstance(stopped, Stopped)
    assert re.fullmatch(
        r"train: 12 updates in .+, [0-9,]+ tokens/s, best BLEU [0-9.]+ at update \d+, "
        rf"model in {run}/checkpoints/step-000000\d\d",
        line.text,
    )
    lie = [run / "curves.png", run / "validation" / "step-00000012.tsv", *([run / "tensorboard"] if board else [])]
    assert all(str(path) in places.text and path.exists() for path in lie)
    tables = sorted(path.name for path in (run / "validation").iterdir())
    assert tables == [f"step-000000{step}.tsv" for step in ("05", "07", "10", "12")]
    head, *rows = [line.split("\t") for line in lie[1].read_text().split("\n")[:-1]]
    translator = load_translator(pointed(run / "checkpoints", LAST), device="cpu")
    sources, references = ((folder / f"valid.{side}").read_text().splitlines()[:4] for side in ("en", "de"))
    assert head == ["source", "reference", "translation"]
    assert rows == [list(row) for row in zip(sources, references, translator.translate(sources, beam=1), strict=True)]


def test_without_matplotlib_training_says_how_its_curves_are_drawn(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    told = [event.text for event in trained(folder, "train.curves=true", "train.steps=1") if isinstance(event, Notice)]
    run = folder / "run"
    how = f'with matplotlib (pip install "nmt[plots]"), or by nmt report {run} without it'
    assert f"train: learning curves are drawn {how}" in told and not (run / "curves.png").exists()


def test_records_that_cannot_be_written_are_told_once_and_training_goes_on(folder: Path) -> None:
    changes = [f"train.tensorboard={str(find_spec('tensorboard') is not None).lower()}"]
    for name in ("validation", "tensorboard"):  # where folders are to be
        (folder / "run" / name).touch()
    events = trained(folder, *changes)
    told = [event.text for event in events if isinstance(event, Caution)]
    assert len(told) == 1 + changes[0].endswith("true")
    assert any("validation translations are not written" in text for text in told)
    assert isinstance(events[-1], Stopped) and events[-1].step == 12


def test_more_steps_go_on_and_less_do_nothing(folder: Path) -> None:
    trained(folder)
    assert [event.step for event in trained(folder, "train.steps=15") if isinstance(event, Step)] == [13, 14, 15]
    again = trained(folder, "train.steps=15", "train.keep_checkpoints=2", "train.patience=9")
    assert not any(isinstance(event, Step | Caution | Validation) for event in again)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("model.width=32", "model.width 16 → 32"),
        ("preprocess.normalization=none", 'preprocess.normalization "nfc" → "none"'),
        ("train.optimizer.kind=sgd", 'optimizer.kind "adam" → "sgd"'),
    ],
)
def test_a_changed_model_is_refused_by_name(change: str, told: str, folder: Path) -> None:
    trained(folder)
    with pytest.raises(TrainingError, match=told) as problem:
        trained(folder, change)
    assert "--run-dir" in problem.value.hint and "--force train" in problem.value.hint


def test_dropout_may_change_while_a_model_learns_and_the_checkpoints_can_be_averaged(folder: Path) -> None:
    trained(folder)
    told = [
        event.text for event in trained(folder, "train.steps=16", "model.dropout=0.25") if isinstance(event, Caution)
    ]
    assert [text.partition(": ")[2] for text in told] == ["going on under changed settings: model.dropout 0.1 → 0.25"]
    assert told[0].startswith(str(folder / "run" / "checkpoints")), "recipes of one name share a folder, so it is named"
    list(average.run(recipe(folder, "train.steps=16", "model.dropout=0.25"), RunFolder(folder / "run")))
    assert load_translator(folder / "run" / "model", device="cpu").translate([""]) == [""]


def test_changed_data_and_a_changed_vocabulary_are_refused(folder: Path) -> None:
    trained(folder)
    shards = folder / "run" / "shards"
    shutil.copyfile(shards / "train.source", shards / "train.target")
    with pytest.raises(TrainingError, match="other training text") as problem:
        trained(folder)
    assert "--force train" in problem.value.hint
    shutil.copytree(folder / "run" / "checkpoints", folder / "other" / "checkpoints")
    for _ in run_stages(recipe(folder, "bpe.size=285"), RunFolder(folder / "other"), choose(last="bpe")):
        pass
    with pytest.raises(TrainingError, match="another vocabulary"):
        list(train.run(recipe(folder, "bpe.size=285"), RunFolder(folder / "other")))


def test_a_changed_rate_is_told_and_a_changed_order_begins_the_epoch_anew(folder: Path) -> None:
    trained(folder, "train.steps=11")
    changes = ("train.steps=14", "train.schedule.peak=1e-3", "train.batch_tokens=128")
    told = [event.text for event in trained(folder, *changes) if isinstance(event, Caution)]
    assert any("train.schedule.peak 0.003 → 0.001" in text and "train.batch_tokens 256 → 128" in text for text in told)
    assert any("starts from its beginning" in text for text in told)


def test_checkpoints_without_resume_cannot_be_gone_on_from(folder: Path) -> None:
    trained(folder)
    for path in folder.glob("run/checkpoints/step-*/resume"):
        shutil.rmtree(path)
    with pytest.raises(TrainingError, match="lack resume/"):
        trained(folder)


def test_another_measure_of_the_best_is_compared_with_its_own_values_only(folder: Path) -> None:
    was, now = "loss", "chrf"
    trained(folder, f"train.best_by={was}", "train.validate_every=4")
    checkpoints = folder / "run" / "checkpoints"
    values = {path.parent.name: read_json(path)[now] for path in checkpoints.glob("step-*/validation.json")}
    assert len(values) == 3
    best = max(sorted(values), key=lambda name: values[name])
    changes = (f"train.best_by={now}", "train.validate_every=4", "train.steps=16", "train.patience=1")
    events = trained(folder, *changes)
    told = [event.text for event in events if isinstance(event, Caution)]
    assert told == [
        f"{checkpoints}: the best checkpoint goes by {now}, no longer by {was}: of those left, step {int(best[5:])}; "
        "patience counts from here"
    ]
    (validation,) = [event for event in events if isinstance(event, Validation)]
    assert validation.best == (validation.chrf > values[best])
    assert pointed(checkpoints, BEST).name == ("step-00000016" if validation.best else best)
    assert not any(isinstance(event, Caution) for event in trained(folder, *changes)), "it is told once"


@pytest.mark.parametrize(
    ("key", "value"),
    [("update", 9999), ("update", -1), ("step", "x"), ("step", 3), ("best", "x"), ("elapsed", None), ("before", 2.5)],
)
def test_a_state_that_no_training_comes_to_is_refused_by_its_file(key: str, value: object, tmp_path: Path) -> None:
    path = tmp_path / "step-00000008"
    (path / "resume").mkdir(parents=True)
    write_json(path / "resume" / "state.json", {"state": {"step": 8, "update": 3, "best": 1.5, "best_step": 4}})
    assert read_state(path) == State(step=8, update=3, best=1.5, best_step=4)
    data = read_json(path / "resume" / "state.json")
    write_json(path / "resume" / "state.json", {"state": {**data["state"], key: value}})
    with pytest.raises(ModelError, match=f"{path}/resume/state.json: is damaged: {key} = ") as problem:
        read_state(path)
    assert problem.value.hint == f"remove {path} to go on from the one before"


@pytest.mark.parametrize("content", ["[]", "{}", '{"batch_tokens": "x"}', '{"batch_tokens": 0}', "{"])
def test_a_number_of_tokens_that_is_none_is_refused_by_its_file(content: str, folder: Path) -> None:
    run = RunFolder(folder / "run")
    (run.checkpoints / "step-00000001" / "resume").mkdir(parents=True)
    for name in ("model.json", "resume/state.json"):
        (run.checkpoints / "step-00000001" / name).write_text("{}")
    run.batch_tokens.write_text(content)
    with pytest.raises(ModelError, match=f"{run.batch_tokens}: is damaged") as problem:
        trained(folder, "train.batch_tokens=auto")
    assert "remove it" in problem.value.hint


def test_weights_that_are_no_numbers_lose_their_validation_and_the_rule_of_bad_steps_ends_training(folder) -> None:
    changes = ("train.schedule.peak=1e30", "train.validate_every=1", "train.save_every=99", "train.max_bad_steps=4")
    with pytest.raises(TrainingError, match="4 updates in a row, up to step"):
        trained(folder, *changes, "train.steps=60")
    lines = list(read_journal(folder / "run" / "journal.jsonl"))
    worthless = [line for line in lines if line["event"] == "validation" and line["bleu"] is None]
    assert len(worthless) >= 3 and not any(line["best"] for line in worthless)
    assert sum(line["event"] == "skipped" for line in lines) == 4


def test_leftovers_of_a_killed_save_are_removed_and_told(folder: Path) -> None:
    trained(folder)
    (folder / "run" / "checkpoints" / "step-00000099.partial").mkdir()
    assert any("removed 1 unfinished" in event.text for event in trained(folder) if isinstance(event, Notice))
    assert not list(folder.rglob("*.partial"))


def test_a_missing_device_is_one_line(folder: Path) -> None:
    with pytest.raises(NmtError, match="cuda:99"):
        trained(folder, "train.device=cuda:99")


@pytest.mark.parametrize("inner", [10**13, 10**18])
def test_a_model_that_no_memory_holds_is_one_line(inner: int, folder: Path) -> None:
    with pytest.raises(TrainingError, match="before the first update: the memory of rank 0 ") as problem:
        trained(folder, f"model.feedforward={inner}")
    assert "smaller" in problem.value.hint


def test_the_last_line_tells_the_best_checkpoint_whatever_became_of_the_journal(folder: Path) -> None:
    """Edited by hand, or with bests of another measure."""
    journal = folder / "run" / "journal.jsonl"
    trained(folder, "train.best_by=chrf")
    lines = journal.read_text().splitlines()
    odd = ['{"event": "step", "step": "x"}', '{"event": "validation", "step": 10, "chrf": "high", "best": true}']
    journal.write_text("\n".join([*odd, *lines[2:], '{"event": "step", "step": 12, "rate": 5.0}', "[1]", ""]))
    events = trained(folder, "train.best_by=loss")
    assert isinstance(events[-1], Stopped) and not events[-1].interrupted
    best = pointed(folder / "run" / "checkpoints", BEST)
    (told,) = (event.text for event in events if isinstance(event, Notice) and "tokens/s" in event.text)
    number = read_validation(best)["loss"]
    assert f"best validation loss {number:.3f} at update {int(best.name[5:])}, model in {best}" in told


def test_no_checkpoint_holds_a_pickle(folder: Path) -> None:
    trained(folder)
    kinds = {path.suffix for path in (folder / "run" / "checkpoints").rglob("*") if path.is_file()}
    assert kinds == {".safetensors", ".json", ".model"}


@pytest.mark.parametrize("kills", [4, pytest.param(40, marks=pytest.mark.slow)])
def test_a_training_killed_at_random_moments_ends_with_the_same_bits(kills: int, folder: Path, tmp_path: Path) -> None:
    unbroken = tmp_path / "unbroken"
    shutil.copytree(folder, unbroken)
    trained(unbroken, "train.save_every=1")
    command = [sys.executable, str(TESTS / "train" / "killed.py"), str(folder), str(kills), "1"]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(TESTS)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert contents(folder) == contents(unbroken)
    lines = list(read_journal(folder / "run" / "journal.jsonl"))
    assert [line["step"] for line in lines if line["event"] == "validation"] == [5, 10, 12]
    assert sorted(p.name for p in folder.glob("run/checkpoints/*")) == sorted(
        p.name for p in unbroken.glob("run/checkpoints/*")
    )
    assert read_json(folder / "run" / "checkpoints" / LAST) == {"step": "step-00000012"}
