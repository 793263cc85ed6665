"""`nmt recipe estimate`, as typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nmt.recipe import read
from nmt.stages.lengths import guessed
from nmt.stages.stage import RunFolder
from nmt.stages.train import training_pairs
from nmt.subwords.vocabulary import Vocabulary

RECIPES = Path(__file__).parents[2] / "recipes"
ON_GPU = ("--gpu", "p100", "--json")


def told(ended: Any) -> dict[str, Any]:
    assert ended.status == 0, ended.err
    return dict(json.loads(ended.out))


def test_lengths_are_guessed_and_then_those_of_the_run(nmt, toy: Path) -> None:
    """Of the run, updates and parameters are the very ones that training has."""
    guess = told(nmt("recipe", "estimate", "toy.toml", *ON_GPU))
    assert guess["updates"]["text"] == "corpus" and guess["vocabulary"]["told_by"] == "bpe.size"
    assert nmt("run", "toy.toml", "--to", "bpe").status == 0
    known = told(nmt("recipe", "estimate", "toy.toml", *ON_GPU))
    recipe, run = read(Path("toy.toml")), RunFolder(toy / "runs" / "toy")
    vocabulary = Vocabulary.load(run.bpe / "vocabulary.model")
    pairs, _ = training_pairs(recipe, run, vocabulary)
    updates = pairs.updates(0)
    assert known["updates"]["text"] == "shards" and known["updates"]["an_epoch"] == len(updates)
    tokens = sum(pairs.load(rows).tokens for update in updates for rows in update)
    assert known["updates"]["target_tokens"] == pytest.approx(tokens / len(updates))
    model = recipe.model.build(len(vocabulary), len(vocabulary), vocabulary.pad)
    assert known["vocabulary"] == {"source": len(vocabulary), "target": len(vocabulary), "told_by": "run"}
    assert known["parameters"]["all"] == sum(parameter.numel() for parameter in model.parameters())


def test_time_grows_with_updates_and_falls_with_gpus(nmt, toy: Path) -> None:
    def cost(*more: str) -> dict[str, Any]:
        return told(nmt("recipe", "estimate", "toy.toml", *ON_GPU, *more))

    one, longer, many = cost(), cost("--set", "train.steps=12"), cost("--gpus", "4")
    for key, part in (("hours", "time"), ("training", "flops"), ("paper", "flops")):
        assert longer[part][key] == pytest.approx(3 * one[part][key])
    assert many["time"]["hours"] == pytest.approx(one["time"]["hours"] / 4)
    assert many["flops"] == {**one["flops"], "paper": pytest.approx(one["flops"]["paper"])}
    accumulated = cost("--set", "train.accumulate=3")
    assert accumulated["flops"]["an_update"]["all"] == pytest.approx(3 * one["flops"]["an_update"]["all"])
    twice = cost("--set", "train.rdrop_alpha=5")
    assert twice["flops"]["training"] == pytest.approx(2 * one["flops"]["training"])


def test_whatever_ends_training_first_is_counted(nmt, toy: Path) -> None:
    def updates(*more: str) -> dict[str, Any]:
        overrides = [part for one in more for part in ("--set", one)]
        return dict(told(nmt("recipe", "estimate", "toy.toml", *ON_GPU, *overrides))["updates"])

    assert updates("train.epochs=1000", "train.minutes=1000")["ended_by"] == "steps"
    found = updates("train.epochs=3", "train.steps=")
    assert found["ended_by"] == "epochs" and found["in_all"] == pytest.approx(3 * found["an_epoch"])
    assert updates("train.minutes=1e-9")["ended_by"] == "minutes"


def test_this_machine_is_measured_and_told_in_80_columns(nmt, toy: Path) -> None:
    ended = nmt("recipe", "estimate", "toy.toml")
    assert ended.status == 0 and "measuring: " in ended.err
    lines = ended.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines if line[0] != " "] == ["parameters", "tokens", "FLOPs", "memory", "time"]
    assert "measured on cpu in float32, 1 thread, by " in ended.out and "TFLOPS of this machine" in ended.out
    assert not (toy / "runs").exists()


@pytest.mark.parametrize(("file", "hours"), [("wmt14-en-de-base", 12), ("wmt14-en-de-big", 84)])
def test_the_papers_trainings_take_about_as_long_as_they_took(nmt, file: str, hours: float) -> None:
    """Without their text, by lengths as in news."""
    ended = nmt("recipe", "estimate", RECIPES / f"{file}.toml", "--gpus", "8", *ON_GPU)
    found = told(ended)
    assert "warning: the training text is not there" in ended.err and found["updates"]["text"] == "news"
    assert found["time"]["hours"] == pytest.approx(hours, rel=0.4)
    assert found["flops"]["published"]["hours"] == hours
    assert found["updates"]["target_tokens"] == pytest.approx(25_000, rel=0.1)  # the rest is padding


def test_what_nobody_can_tell_is_not_told(nmt, toy: Path) -> None:
    (toy / "train.aa").unlink()
    ended = nmt("recipe", "estimate", "toy.toml", "--gpu", "h100", "--set", "train.steps=", "--set", "train.epochs=3")
    assert ended.status == 0 and "how many updates there are nobody can tell" in " ".join(ended.out.split())
    assert "warning: such small batches leave a GPU idle" in ended.err


@pytest.mark.parametrize(
    ("arguments", "status", "problem"),
    [
        (("--gpu", "h10"), 1, "error: gpu = 'h10' is none of "),
        (("--gpus", "2"), 2, "--gpus 2: say which with --gpu"),
        (("--set", "train.device=cuda:77"), 1, "error: [train] device = 'cuda:77': this machine has "),
        (("--set", "train.max_source_tokens=2", "--gpu", "t4"), 1, "no training pair is left"),
    ],
)
def test_what_stands_in_the_way(nmt, toy: Path, arguments: tuple[str, ...], status: int, problem: str) -> None:
    ended = nmt("recipe", "estimate", "toy.toml", *arguments)
    assert (ended.status, ended.out) == (status, "") and problem in ended.err


def test_pieces_are_guessed_by_words_or_letters() -> None:
    assert guessed("a") == 1 and guessed("") == 1
    assert guessed("one two three four") == round(1.3 * 4)
    assert guessed("Donaudampfschifffahrtsgesellschaft") > 5
    assert guessed("機械翻訳" * 5) == 12
