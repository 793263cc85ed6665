"""Limits of length count the end mark, in training and in use alike; what is beyond them is counted or split."""

from __future__ import annotations

from pathlib import Path

import pytest
import tasks
from nmt.cli import main

LIMIT = 6
AROUND = (LIMIT - 2, LIMIT - 1, LIMIT, LIMIT + 1)  # words, each of which is one token
SETTINGS = f"""\
steps = 2
max_source_tokens = {LIMIT}
max_target_tokens = {LIMIT}
schedule.kind = "constant"

[model]
width = 8
feedforward = 8
encoder_layers = 1
decoder_layers = 1
attention.heads = 1

[[data.train]]
source = "around.aa"
target = "around.bb"
"""


LEARNED = ["learned", f"model.position.length={LIMIT}", f"train.max_source_tokens={LIMIT + 9}"]


@pytest.mark.parametrize("position", [["sinusoidal"], LEARNED], ids=lambda position: position[0])
def test_training_and_use_hold_the_same_limits(
    position: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def nmt(*arguments: object) -> tuple[list[str], str]:
        capsys.readouterr()
        assert main([*map(str, arguments)]) == 0
        captured = capsys.readouterr()
        return captured.out.splitlines(), captured.err

    recipe = tasks.write(tmp_path, "reverse", SETTINGS, train=600, held_out=4, longest=LIMIT - 1)
    sources = [" ".join(tasks.WORDS[words + i] for i in range(words)) for words in AROUND]
    for language in ("aa", "bb"):
        (tmp_path / f"around.{language}").write_text("".join(f"{line}\n" for line in sources))

    kind, *more = position
    overrides = [part for setting in (f"model.position.kind={kind}", *more) for part in ("--set", setting)]
    _, said = nmt("run", recipe, "--run-dir", tmp_path / "run", "--to", "average", *overrides)
    assert "2 training pairs are left out: longer than the limits of [train]" in said
    assert (f"limits of [train], or than [model.position] length = {LIMIT}" in said) == (kind == "learned")

    pieces, _ = nmt("encode", tmp_path / "run", "--input", tmp_path / "around.aa")
    assert [len(line.split()) for line in pieces] == list(AROUND)
    translated, said = nmt("translate", tmp_path / "run", "--input", tmp_path / "around.aa")
    assert len(translated) == len(AROUND)
    split = [line.partition(" tokens")[0] for line in said.splitlines() if "split into" in line]
    assert split == [f"warning: line {i + 1}: {n}" for i, n in enumerate(AROUND) if n + 1 > LIMIT]
    scores, said = nmt(
        "rescore", tmp_path / "run", "--source", tmp_path / "around.aa", "--target", tmp_path / "around.bb"
    )
    assert len(scores) == len(AROUND)
    assert ("scored of lines 3, 4" in said) == (kind == "learned"), "only a model with a last position has to cut"
