"""The journal keeps what happened, and goes back when training does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nmt.errors import OutputError
from nmt.train.events import Saved, Skipped, Step, Stopped, Validation
from nmt.train.journal import Journal, read_journal


def step(number: int, loss: float = 2.0, tokens: int = 10) -> Step:
    return Step(number, 1, loss, tokens, 100.0, 1e-3, 0.5, loss / 2)


def test_steps_are_summed_by_their_tokens(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl", steps_a_line=2)
    for event in (step(1, 1.0, 30), step(2, 3.0, 10), step(3)):
        journal.write(event)
    (line,) = read_journal(tmp_path / "journal.jsonl")
    assert line["event"] == "step" and line["step"] == 2 and line["steps"] == 2
    assert line["loss"] == pytest.approx(1.5) and line["tokens"] == 40 and line["rate"] == pytest.approx(100)


def test_any_other_event_writes_the_steps_before_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    events = [step(1), Skipped(2, 1, 1, 1, (4, 5)), step(3), Validation(3, 1.0, 2.7, float("nan"), None, False)]
    for event in [*events, Saved(tmp_path, 3), Stopped("done", 3)]:
        journal.write(event)
    lines = list(read_journal(tmp_path / "journal.jsonl"))
    assert [line["event"] for line in lines] == ["step", "skipped", "step", "validation", "saved", "stopped"]
    assert lines[1]["rows"] == [4, 5]
    assert lines[3]["bleu"] is None


def test_going_back_takes_out_what_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path, steps_a_line=1)
    for event in (step(1), step(2), Validation(2, 1.0, 2.7, 3.0, 4.0, True), Saved(tmp_path, 2), step(3)):
        journal.write(event)
    with path.open("a") as stream:
        stream.write(json.dumps({"event": "other", "step": 99}) + "\n" + '{"event": "st')
    assert Journal(path).rewind(2, validated=2) == 2
    assert [line["event"] for line in read_journal(path)] == ["step", "step", "validation", "saved", "other"]
    assert Journal(path).rewind(2, validated=0) == 1
    assert [line["event"] for line in read_journal(path)] == ["step", "step", "saved", "other"]
    assert path.read_text().endswith("\n")


def test_there_may_be_no_journal_yet(tmp_path: Path) -> None:
    assert Journal(tmp_path / "journal.jsonl").rewind(0, 0) == 0


def test_a_journal_that_cannot_be_written_or_read_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", tmp_path / "file" / "journal.jsonl"):
        with pytest.raises(OutputError, match=f"{path}: cannot be written: ") as problem:
            Journal(path).write(Stopped("done", 3))
        assert problem.value.hint
    with pytest.raises(OutputError, match=f"{tmp_path}/folder: cannot be read: Is a directory"):
        Journal(tmp_path / "folder").rewind(3, 3)
