"""The journal keeps what happened, and goes back when training does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nmt.errors import OutputError
from nmt.train.events import Saved, Skipped, Step, Stopped, Validation
from nmt.train.journal import Journal, joined, made_once, read_journal


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


def test_what_was_made_again_counts_once_as_it_was_made_last() -> None:
    def made(first: int, attempt: int, last: int = 60) -> list[dict[str, object]]:
        steps = [{"event": "step", "step": i, "steps": 10, "attempt": attempt} for i in range(first + 10, last + 1, 10)]
        checks = [{"event": "validation", "step": i, "attempt": attempt} for i in range(first + 20, last + 1, 20)]
        return sorted([*steps, *checks, {"event": "saved", "step": last}], key=lambda entry: entry["step"])

    def told(entries: list[dict[str, object]]) -> list[tuple[object, ...]]:
        return [(one["event"], one["step"], one["attempt"]) for one in made_once(entries)]

    once = told(made(0, 1))
    assert once == [entry for entry in told(made(0, 1) + made(0, 1))] and len(once) == 9
    again = told(made(0, 1) + made(20, 2) + made(40, 3))
    assert [entry[:2] for entry in again] == [entry[:2] for entry in once]
    assert [attempt for *_, attempt in again] == [1] * 3 + [2] * 3 + [3] * 3
    assert told([*made(0, 1, 20), {"event": "validation", "step": 20, "attempt": 2}])[-2:] == [
        ("step", 20, 1),
        ("validation", 20, 2),
    ]


def test_lines_that_an_event_or_a_restart_has_parted_are_one_mean_again(tmp_path: Path) -> None:
    def told(parts: tuple[int, ...]) -> list[dict[str, object]]:
        journal = Journal(tmp_path / f"{len(parts)}.jsonl")
        for i in range(1, 41):
            journal.write(step(i))
            if i in parts:
                journal.write(Saved(tmp_path, i))
        steps = [one for one in joined(read_journal(journal.path)) if one["event"] == "step"]
        return [{name: one[name] for name in ("step", "steps", "loss", "nll", "tokens", "rate")} for one in steps]

    whole = told(())
    assert [one["step"] for one in whole] == [10, 20, 30, 40]
    assert told((3, 7, 20, 25, 26)) == [pytest.approx(one) for one in whole]


@pytest.mark.parametrize(
    "odd", ['{"event": "step", "step": "x"}', '{"event": "validation", "step": 1, "bleu": "high"}', "[1]", "7", "{", ""]
)
def test_lines_that_training_cannot_have_written_are_passed_over_and_go_when_it_goes_on(
    odd: str, tmp_path: Path
) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(odd + "\n")
    Journal(path, steps_a_line=1).write(step(1))
    assert [line["step"] for line in read_journal(path)] == [1]
    assert Journal(path).rewind(1, 1) == 1 and path.read_text().count("\n") == 1


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
