"""nmt report: a page of a real run, however far it has come, and of runs side by side."""

from __future__ import annotations

from pathlib import Path


def test_a_run_is_reported_from_its_folder_alone(nmt, toy: Path) -> None:
    assert nmt("run", "toy.toml", "--quiet").status == 0
    ended = nmt("report", "runs/toy")
    assert (ended.status, ended.out, ended.err) == (0, "", "wrote report.html\n")
    html = (toy / "report.html").read_text(encoding="utf-8")
    for told in (
        "training pairs",
        "mean of 2 checkpoints",
        "tok:13a",
        "Translations of test",
        "all 4 steps are done",
        "Machine and versions of train",
        "packages.torch",
        "Alignment and attention",
        "Median of ",
        "Cross-attention of toy: layer",
    ):
        assert told in html, told
    assert nmt("report", "runs/toy", "--no-attention", "--output", "-").out.count("Alignment and attention") == 0
    asked = nmt("report", "runs/toy", "--sentence", "bal kor", "--output", "-").out
    assert "nmt attention runs/toy &#x27;bal kor&#x27;" in asked and "Median of " not in asked
    assert nmt("report", "runs/toy", "--sentence", "bal kor", "--no-attention").status == 2
    assert nmt("report", "runs/toy", "--context", "bal kor").status == 2
    none = nmt("report", "runs/toy", "--context", "bal kor", "--sentence", "dem")
    assert none.status == 1 and "no run's model reads context" in none.err


def test_runs_are_compared_and_stdout_gets_the_page(nmt, toy: Path) -> None:
    for name, seed in (("one", 1), ("two", 2)):
        nmt("run", "toy.toml", "--quiet", "--to", "bpe", "--run-dir", name, "--set", f"seed={seed}")
    ended = nmt("report", "one", "two", "--output", "-")
    assert ended.status == 0 and ended.out.startswith("<!DOCTYPE html>")
    assert "<code>seed</code>" in ended.out and "not translated yet" in ended.out


def test_what_is_no_run_is_named(nmt, toy: Path) -> None:
    ended = nmt("report", ".")
    assert ended.status == 1 and "is no run folder" in ended.err and "hint: " in ended.err
    assert nmt("report").status == 2
