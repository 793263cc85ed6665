"""What people are told of a folder: its card and its report."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from nmt.checkpoint.card import write_card
from nmt.checkpoint.report import about, checkpoints
from nmt.checkpoint.save import point
from nmt.files import write_json
from nmt.score.metric import Score


def test_a_card_shows_scores_once_there_are_some(model: Path) -> None:
    write_card(model)
    assert "Not yet measured." in (model / "README.md").read_text()
    write_card(model, [("test2016", Score("BLEU", 31.416, "nrefs:1|case:mixed", True))])
    card = (model / "README.md").read_text()
    assert "| test2016 | BLEU | 31.42 | `nrefs:1\\|case:mixed` |" in card
    assert "nmt translate" in card and "License" in card


def test_a_report_tells_what_a_folder_holds(model: Path, other_vocabulary: Path) -> None:
    rows = dict(about(model))
    assert rows["languages"] == "en → de"
    assert rows["model.width"] == "8"
    assert rows["vocabulary.model"].endswith("as trained")
    (model / "vocabulary.model").write_bytes(other_vocabulary.read_bytes())
    assert "DIFFERS" in dict(about(model))["vocabulary.model"]
    (model / "vocabulary.model").unlink()
    assert dict(about(model))["vocabulary.model"] == "MISSING"


def test_a_runs_checkpoints_are_listed_with_their_scores(save, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    for step in (5, 10):
        save(folder / f"step-{step}", step=step)
    write_json(folder / "step-10" / "validation.json", {"loss": 1.25, "bleu": 12.0, "chrf": None})
    point(folder, "best.json", folder / "step-10")
    heading, first, second = checkpoints(tmp_path)
    assert heading[:4] == ("checkpoint", "loss", "bleu", "chrf")
    assert first == ("step-5", "-", "-", "-", "cannot be gone on from")
    assert second == ("step-10", "1.250", "12.000", "-", "best, cannot be gone on from")
    assert checkpoints(folder / "step-5") == []


def test_a_report_needs_no_torch(model: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from nmt.checkpoint.report import about, checkpoints;"
        f"about(Path({str(model)!r})); checkpoints(Path({str(model)!r})); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
