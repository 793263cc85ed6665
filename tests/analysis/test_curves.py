"""Learning curves as a picture: drawn of what the journal says, whole, and in next to no time of a training."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from analysis.runs import journal

pytest.importorskip("matplotlib")

from nmt.analysis.curves import Curves, draw  # noqa: E402

PNG = b"\x89PNG\r\n\x1a\n"


def write(path: Path, entries: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    return path


def test_a_picture_of_a_journal_is_whole_and_always_the_same(tmp_path: Path) -> None:
    curves = Curves(write(tmp_path / "journal.jsonl", journal()), tmp_path / "curves.png", "costs $5 or $6")
    assert curves.draw()
    first = (tmp_path / "curves.png").read_bytes()
    assert first.startswith(PNG) and first.endswith(b"IEND\xaeB\x60\x82")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    write(tmp_path / "journal.jsonl", [*journal()[:3], *journal()])  # a journal of two attempts
    assert curves.draw() and (tmp_path / "curves.png").read_bytes() == first


def test_a_journal_without_numbers_gives_no_picture(tmp_path: Path) -> None:
    assert draw([], "none") == b""
    unmeasured = {"event": "validation", "step": 3, "loss": None, "bleu": None}
    curves = Curves(write(tmp_path / "journal.jsonl", [unmeasured]), tmp_path / "curves.png", "none")
    assert not curves.draw() and not (tmp_path / "curves.png").exists()


def test_pictures_take_no_more_than_their_share_of_the_time(tmp_path: Path) -> None:
    now, costs = [0.0], 3.0

    def clock() -> float:
        now[0] += costs / 2  # asked twice by every picture, once by everything else
        return now[0]

    curves = Curves(write(tmp_path / "journal.jsonl", []), tmp_path / "curves.png", "none", clock)
    drawn = 0
    while now[0] < 3000:
        if curves.due():
            curves.draw()
            drawn += 1
        assert drawn * costs / 2 <= 0.02 * now[0] + costs
    assert drawn > 20
