"""Shapes can be right while nothing is learned: every kind of model learns to copy and to reverse unseen sentences."""

from __future__ import annotations

from pathlib import Path

import pytest
import tasks
from model.cases import POSITIONS

from nmt.checkpoint.load import load_translator
from nmt.recipe import read
from nmt.stages.run import choose, run_stages
from nmt.stages.stage import RunFolder

SETTINGS = """\
steps = 1200
batch_tokens = 1024
validate_every = 1200
save_every = 500
label_smoothing = 0.0
schedule = { kind = "linear", peak = 3e-3, warmup_steps = 100 }

[model]
width = 64
feedforward = 128
encoder_layers = 2
decoder_layers = 2
dropout = 0.0
attention.heads = 4

[average]
count = 1
"""


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("position", sorted({position.kind for position in POSITIONS}))
@pytest.mark.parametrize("task", tasks.TASKS)
def test_a_model_learns_the_task(task: str, position: str, norm: str, tmp_path: Path) -> None:
    file = tasks.write(tmp_path, task, SETTINGS, train=20000, held_out=200)
    run = RunFolder(tmp_path / "run")
    for _ in run_stages(read(file, [f"model.position.kind={position}", f"model.norm={norm}"]), run, choose()):
        pass
    found = (run.translations / "test.bb").read_text(encoding="utf-8").splitlines()
    expected = (tmp_path / "test.bb").read_text(encoding="utf-8").splitlines()
    right = sum(one == other for one, other in zip(found, expected, strict=True))
    assert right >= 0.99 * len(expected)


@pytest.mark.slow
def test_headlines_are_translated_as_sentences_are_once_training_has_seen_some(tmp_path: Path) -> None:
    """Learned from lower case and, in training alone, some pairs in other letters."""
    settings = (
        SETTINGS.replace("steps = 1200", "steps = 2500") + "[preprocess]\naugment_upper = 0.1\naugment_title = 0.1\n"
    )
    file = tasks.write(tmp_path, "reverse", settings, train=20000, held_out=100)
    run = RunFolder(tmp_path / "run")
    for _ in run_stages(read(file, ["bpe.size=460"]), run, choose(last="average")):
        pass
    ours = load_translator(run.model, "cpu")
    for change in (str, str.upper, str.title):
        sources, targets = (
            [change(line) for line in column] for column in zip(*tasks.pairs("reverse", 100, seed=2), strict=True)
        )
        right = sum(one == other for one, other in zip(ours.translate(sources), targets, strict=True))
        assert right >= 95
