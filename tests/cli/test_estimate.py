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


def test_lengths_are_counted_where_the_vocabulary_is_there_to_start_from(nmt, toy: Path) -> None:
    assert nmt("run", "toy.toml", "--to", "average").status == 0
    known = told(nmt("recipe", "estimate", "toy.toml", *ON_GPU))
    there = ["--set", "train.start_from=runs/toy", "--run-dir", "tuned"]
    found = told(nmt("recipe", "estimate", "toy.toml", *ON_GPU, *there))
    assert (found["updates"]["text"], found["vocabulary"]["told_by"]) == ("pieces", "start_from")
    assert found["updates"]["target_tokens"] == pytest.approx(known["updates"]["target_tokens"], rel=0.01)


def test_time_grows_with_updates_and_falls_with_gpus(nmt, toy: Path) -> None:
    def cost(*more: str) -> dict[str, Any]:
        return told(nmt("recipe", "estimate", "toy.toml", *ON_GPU, *more))

    one, longer, many = cost(), cost("--set", "train.steps=12"), cost("--gpus", "4")
    for key, part in (("hours", "time"), ("training", "flops"), ("paper", "flops")):
        assert longer[part][key] == pytest.approx(3 * one[part][key])
    assert many["time"]["hours"] == pytest.approx(one["time"]["hours"] / 4)
    assert many["flops"] == {**one["flops"], "paper": pytest.approx(one["flops"]["paper"])}
    assert many["memory"]["activations"] < one["memory"]["activations"]  # of a part of the batch
    twice = cost("--set", "train.rdrop_alpha=5")
    assert twice["flops"]["training"] == pytest.approx(2 * one["flops"]["training"])


def test_an_epochs_last_update_has_what_is_left(nmt, toy: Path) -> None:
    """However many batches are accumulated, an epoch has the same tokens in a whole number of updates."""

    def cost(batches: int) -> tuple[dict[str, Any], float]:
        found = told(nmt("recipe", "estimate", "toy.toml", *ON_GPU, "--set", f"train.accumulate={batches}"))
        return found["updates"], found["flops"]["an_update"]["all"]

    (one, work), (some, more), (many, most) = map(cost, (1, 2, 1000))
    assert some["an_epoch"] == -(-one["an_epoch"] // 2) > one["an_epoch"] / 2 and many["an_epoch"] == 1
    for updates, flops in ((some, more), (many, most)):
        assert updates["an_epoch"] * updates["target_tokens"] == pytest.approx(one["an_epoch"] * one["target_tokens"])
        assert updates["an_epoch"] * flops == pytest.approx(one["an_epoch"] * work)
    assert (some["accumulate"], many["accumulate"]) == (2, one["an_epoch"])


def test_a_small_corpus_counts_as_often_as_its_weight_says(nmt, toy: Path) -> None:
    words = {"train.aa": "a\n" * 10, "train.bb": "b\n" * 10, "long.aa": "a a a a a a a a a a\n" * 200}
    for name, text in {**words, "long.bb": words["long.aa"]}.items():
        (toy / name).write_text(text)
    recipe = (toy / "toy.toml").read_text()
    more = '[[data.train]]\nsource = "long.aa"\ntarget = "long.bb"\n\n[data.valid]'
    recipe = recipe.replace('target = "train.bb"', 'target = "train.bb"\nweight = 20').replace("[data.valid]", more)
    (toy / "two.toml").write_text(recipe)
    updates = told(nmt("recipe", "estimate", "two.toml", *ON_GPU))["updates"]
    short, long = (1 + guessed(text) for text in ("a", "a a a a a a a a a a"))
    assert updates["an_epoch"] * updates["source_tokens"] == pytest.approx(200 * short + 200 * long)


def test_what_a_run_must_make_anew_is_guessed_instead(nmt, toy: Path) -> None:
    """As when settings are tried out beside a run that is there, or when one was broken off."""
    assert nmt("run", "toy.toml", "--to", "bpe").status == 0
    run, aside = toy / "runs" / "toy", toy / "aside"
    for change, lost, reason in (
        ("bpe.size=290", None, "bpe: bpe.size changed 300 → 290"),
        ("train.steps=9", run / "shards" / "train.target", "bpe: shards/train.target is missing or was changed"),
        ("train.steps=9", run / "preprocess", "preprocess: has not run yet"),
        ("preprocess.max_ratio=3", toy / "test.aa", "preprocess: preprocess.max_ratio changed 9.0 → 3.0"),
    ):
        if lost:
            lost.rename(aside)
        ended = nmt("recipe", "estimate", "toy.toml", *ON_GPU, "--set", change)
        if lost:
            aside.rename(lost)
        found = told(ended)
        assert (found["updates"]["text"], found["vocabulary"]["told_by"]) == ("corpus", "bpe.size"), change
        assert reason in ended.err and "made anew" in found["warnings"][0]
    (toy / "train.aa").unlink()  # which was read already
    known = told(nmt("recipe", "estimate", "toy.toml", *ON_GPU, "--set", "train.steps=9"))
    assert known["updates"]["text"] == "shards" and not any("made anew" in warning for warning in known["warnings"])


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
        (("--set", "model.feedforward=10000000000000"), 1, "cpu: weights, gradients and moments need "),
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
