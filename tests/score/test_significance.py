"""Intervals and p-values are those that sacrebleu's own program prints."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from score.systems import references, system

from nmt.errors import DataError
from nmt.score.config import Bleu2017Config, BleuConfig, ChrfConfig, TerConfig, named
from nmt.score.significance import compare, score_with_interval

REFERENCE = references()
SYSTEMS = {"first": system(REFERENCE, 0.2, 1), "better": system(REFERENCE, 0.15, 2), "worse": system(REFERENCE, 0.5, 4)}
METRICS = {"BLEU": BleuConfig(), "chrF2": ChrfConfig(), "TER": TerConfig()}


def sacrebleu(folder: Path, *arguments: str) -> str:
    for name, lines in {"reference": REFERENCE, **SYSTEMS}.items():
        (folder / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "reference", *arguments, "-m", "bleu", "chrf", "ter", "-w", "10"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout.decode()


def test_confidence_intervals_are_those_of_the_program(tmp_path: Path) -> None:
    for printed in json.loads(sacrebleu(tmp_path, "-i", "first", "--confidence", "--confidence-n", "200")):
        metric = METRICS[printed["name"]].build("en")
        score = score_with_interval(metric, SYSTEMS["first"], [REFERENCE], 200)
        assert score.interval is not None
        assert round(score.value, 10) == printed["score"]
        assert round(score.interval.mean, 10) == printed["confidence_mean"]
        assert round(score.interval.half_width, 10) == printed["confidence_var"]
        assert score.interval.signature == printed["signature"]
        assert "bs:200|seed:12345" in score.interval.signature


@pytest.mark.parametrize(("test", "flag", "samples"), [("bootstrap", "--paired-bs", 200), ("ar", "--paired-ar", 500)])
def test_paired_tests_are_those_of_the_program(tmp_path: Path, test: Any, flag: str, samples: int) -> None:
    printed = sacrebleu(tmp_path, "-i", *SYSTEMS, flag, f"{flag}-n", str(samples), "-f", "latex")
    rows = [line.split("&")[1:] for line in printed.splitlines() if " & " in line]
    for column, (name, config) in enumerate(METRICS.items()):
        paired = compare(config.build("en"), list(SYSTEMS.values()), [REFERENCE], test, samples)
        assert paired.metric == name in rows[0][column]
        assert f"- {name:<10} {paired.signature}\n" in printed
        for i, row in enumerate(rows[1:]):
            interval, p = paired.intervals[i], paired.p_values[i]
            told = [f"{paired.scores[i]:.10f}"]
            told += [f"{interval.mean:.10f}", f"{interval.half_width:.10f}"] if interval else []
            told += [] if p is None else [f"{p:.4f}"]
            assert re.findall(r"[\d.]+", row[column]) == told


@pytest.mark.parametrize("config", METRICS.values(), ids=METRICS)
def test_intervals_of_texts_that_have_next_to_nothing_right_are_told(config: Any) -> None:
    lines = [REFERENCE[0], *[""] * 19]  # a third of the resamples hold blank lines alone
    score = score_with_interval(config.build("en"), lines, [REFERENCE[:1] + [""] * 10 + REFERENCE[1:10]], 200)
    assert score.interval is not None and 0 <= score.interval.mean <= 100


def test_an_interval_leaves_value_and_signature_as_they_are() -> None:
    metric = BleuConfig().build("en")
    plain = metric.score(SYSTEMS["first"], [REFERENCE])
    score = score_with_interval(metric, SYSTEMS["first"], [REFERENCE], 50)
    assert (score.value, score.signature, score.details) == (plain.value, plain.signature, plain.details)
    assert metric.score(SYSTEMS["first"], [REFERENCE]) == plain


@pytest.mark.parametrize("metric", named(["bleu", "bleu-2017", "chrf++", "ter"]), ids=lambda metric: metric.kind)
def test_every_metric_can_be_tested_under_its_own_name(metric: Any) -> None:
    built = metric.build("en")
    paired = compare(built, list(SYSTEMS.values()), [REFERENCE], "ar", 50)
    scores = [built.score(lines, [REFERENCE]) for lines in SYSTEMS.values()]
    assert paired.metric == scores[0].name
    assert paired.scores == pytest.approx([score.value for score in scores], abs=1e-9)


def test_clear_differences_are_significant_and_none_is_not() -> None:
    metric = Bleu2017Config().build("en")
    systems = [SYSTEMS["first"], SYSTEMS["worse"], SYSTEMS["first"]]
    worse, copy = compare(metric, systems, [REFERENCE], "ar", 99).p_values[1:]
    assert worse is not None and worse < 0.05
    assert copy is None


def test_a_sentence_may_lack_a_reference() -> None:
    second = ["" if i % 2 else line for i, line in enumerate(REFERENCE)]
    paired = compare(BleuConfig().build("en"), list(SYSTEMS.values()), [REFERENCE, second], "bootstrap", 20)
    assert "nrefs:var" in paired.signature


def test_systems_of_unequal_length_are_refused() -> None:
    with pytest.raises(DataError, match="59 lines"):
        compare(BleuConfig().build("en"), [SYSTEMS["first"], SYSTEMS["worse"][1:]], [REFERENCE], "ar", 10)
