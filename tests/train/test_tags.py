"""One model for several languages: a tag before every source sentence, from the recipe to the translation."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from train import tagged
from train.runs import recipe

from nmt.batches.shards import Shard
from nmt.checkpoint.layout import read_description
from nmt.checkpoint.load import load_translator
from nmt.checkpoint.report import about
from nmt.errors import NmtError, RecipeError
from nmt.events import Caution, Event, Notice
from nmt.files import read_json
from nmt.recipe import dump, read
from nmt.search.control.request import Request
from nmt.search.translate import Translator
from nmt.stages.check import problems
from nmt.stages.run import choose, run_stages
from nmt.stages.stage import RunFolder
from nmt.subwords.vocabulary import Vocabulary
from nmt.train.events import Validation

LINES = ["ab cd ef", "gh", "", "<2yy> ab", "ab <2xx> cd <2yy>", "cd cd ef ef gh " * 30]


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a few updates: its noise depends on all it reads."""
    folder = tmp_path_factory.mktemp("tags")
    tagged.write(folder)
    list(run_stages(recipe(folder, "train.valid_lines=2"), RunFolder(folder / "run"), choose()))
    return folder


@pytest.fixture(scope="module")
def translator(toys: Path) -> Translator:
    return load_translator(toys / "run", device="cpu")


def translated(translator: Translator, requests: Sequence[Request | str], **settings) -> list[tuple[str, float]]:
    return [(one.text, one.score) for one in translator.stream(requests, **settings)]


def test_shards_begin_with_the_tag_of_their_set_and_limits_count_it(toys: Path) -> None:
    run = RunFolder(toys / "run")
    vocabulary = Vocabulary.load(run.bpe / "vocabulary.model")
    report = read_json(run.preprocess / "report.json")
    assert [corpus["tag"] for corpus in report["corpora"]] == ["<2xx>", "<2yy>"]
    for split, sets in (("train", report["corpora"]), ("valid", report["valid_sets"])):
        source, target = (Shard.open(run.shards / f"{split}.{side}") for side in ("source", "target"))
        texts = (run.preprocess / f"{split}.source").read_text().splitlines()
        expected = [one["tag"] for one in sets for _ in range(one["kept"])]
        assert len(expected) == len(source) == len(texts)
        for i, (tag, text) in enumerate(zip(expected, texts, strict=True)):
            assert source[i].tolist() == [vocabulary.tags[tag], *vocabulary.encode(text)]
            assert not set(target[i].tolist()) & set(vocabulary.tags.values())


def test_equal_sources_under_two_tags_are_no_duplicates(toys: Path) -> None:
    report = read_json(toys / "run" / "preprocess" / "report.json")
    assert report["corpora"][0]["kept"] == report["corpora"][1]["kept"] > 20


@pytest.mark.parametrize("beam", [1, 3])
def test_tags_by_line_in_one_batch_are_separate_runs(beam: int, translator: Translator) -> None:
    separate = [translated(translator, LINES, tag=tag, beam=beam) for tag in ("<2xx>", "<2yy>")]
    mixed = [Request(line, tag=tag) for line in LINES for tag in ("<2xx>", "<2yy>")]
    together = translated(translator, mixed, beam=beam)
    for number, ours in enumerate(separate):
        assert [text for text, _ in together[number::2]] == [text for text, _ in ours]
        assert [s for _, s in together[number::2]] == pytest.approx([s for _, s in ours], abs=1e-4)
    assert separate[0] != separate[1]


def test_text_that_spells_a_tag_is_text(translator: Translator) -> None:
    plain, spelled = (translated(translator, [line], tag="<2xx>") for line in ("ab", "<2yy> ab"))
    assert plain != spelled
    assert spelled != translated(translator, ["ab"], tag="<2yy>")


def test_no_tag_is_ever_written(translator: Translator) -> None:
    """With the tags' rows made the likeliest by far, search still takes none of them."""
    shifted = load_translator(translator.source_vocabulary.path.parent, device="cpu")
    weight = shifted.model.output_weight_VD.data
    for i in shifted.source_vocabulary.tags.values():
        weight[i] = 100 * weight[5]
    for settings in ({"beam": 1}, {"beam": 4}, {"sample": True}):
        for found in shifted.stream(LINES, tag="<2xx>", **settings):
            assert not any(token.startswith("<2") for token in found.best.tokens)


def test_a_missing_or_unknown_tag_is_an_error_with_the_list(translator: Translator) -> None:
    with pytest.raises(NmtError, match=r"line 1: this model was trained with a tag .* <2xx>, <2yy>") as problem:
        translator.translate(["ab"])
    assert "--to xx" in problem.value.hint
    with pytest.raises(NmtError, match=r"line 2: <2xz> is not a tag of this model; it knows <2xx>, <2yy>"):
        translator.translate(["", Request("ab", tag="<2xz>")], tag="<2xx>")
    with pytest.raises(NmtError, match="<2xx>, <2yy>"):
        translator.rescore(["a"], ["a"])
    assert translator.translate(["", "  "]) == ["", ""]


def test_scores_of_given_text_are_those_of_search_under_the_same_tag(translator: Translator) -> None:
    for tag in ("<2xx>", "<2yy>"):
        found = list(translator.stream(LINES[:2], tag=tag, length_penalty="none"))
        again = translator.rescore(LINES[:2], [one.text for one in found], tag=tag, length_penalty="none")
        same = [one.best.tokens == other.tokens for one, other in zip(found, again, strict=True)]
        for one, other, alike in zip(found, again, same, strict=True):
            assert not alike or one.score == pytest.approx(other.score, abs=1e-4)
    scores = [translator.rescore(["ab cd"], ["ab cd"], tag=tag)[0].score for tag in ("<2xx>", "<2yy>")]
    assert scores[0] != pytest.approx(scores[1], abs=1e-6)


def test_alignments_name_words_of_the_text(translator: Translator) -> None:
    for found in translator.stream(LINES, tag="<2yy>", alignment=True):
        source, target = len(found.source.split()), len(found.text.split())
        assert all(i < source and j < target for i, j in found.best.alignment or ())


def test_validation_and_tests_are_scored_by_pair_and_language(toys: Path) -> None:
    run = RunFolder(toys / "run")
    journal = [json.loads(line) for line in run.journal.read_text().splitlines()]
    sets = [event["sets"] for event in journal if event["event"] == "validation"]
    assert sets and all(list(one) == ["<2xx>", "<2yy>"] for one in sets)
    last = next(event for event in reversed(journal) if event["event"] == "validation")
    assert last["chrf"] == pytest.approx(sum(one["chrf"] for one in last["sets"].values()) / 2)
    scored = {one["name"]: one for one in read_json(run.scores / "scores.json")["sets"]}
    assert "tok:13a|" in scored["copy"]["scores"][0]["signature"]
    assert "tok:zh|" in scored["back"]["scores"][0]["signature"]
    assert sorted(path.name for path in run.translations.glob("*.??")) == ["back.zh", "copy.de"]
    translator = load_translator(run.path, device="cpu")
    sources = (toys / "valid.xx").read_text().splitlines()
    assert (run.translations / "back.zh").read_text().splitlines() == translator.translate(sources, tag="<2yy>")


def test_the_recipe_reads_back_and_is_found_without_problems(toys: Path, tmp_path: Path) -> None:
    resolved = recipe(toys)
    (tmp_path / "again.toml").write_text(dump(resolved))
    assert read(tmp_path / "again.toml") == resolved
    assert [text for text in problems(resolved, RunFolder(tmp_path / "run")) if "[bpe]" not in text] == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("data.test.0.tag=<2zz>", "copy: tag <2zz> is not one of the training corpora's; they are <2xx>, <2yy>"),
        ("data.test.1.tag=", "every training corpus has a tag, and back has none; one of <2xx>, <2yy> is needed"),
        ("data.train.0.tag=2xx", "a tag is a name in angle brackets"),
        ("data.train.0.tag=<s>", "are taken"),
        ("data.valid.1.tga=<2yy>", "did you mean tag?"),
    ],
)
def test_rules_of_tags_are_told(change: str, told: str, toys: Path) -> None:
    with pytest.raises(RecipeError) as problem:
        recipe(toys, change)
    assert told in f"{problem.value.problem} {problem.value.hint}"


def test_a_tag_that_changes_makes_subwords_anew(toys: Path, tmp_path: Path) -> None:
    shutil.copytree(toys, tmp_path / "toys")
    changes = ["data.train.1.tag=<2zz>", "data.valid.1.tag=<2zz>", "data.test.1.tag=<2zz>"]
    events = list(
        run_stages(recipe(tmp_path / "toys", *changes), RunFolder(tmp_path / "toys" / "run"), choose(last="bpe"))
    )
    assert [type(event).__name__ for event in events].count("StageStarted") == 2
    assert list(Vocabulary.load(tmp_path / "toys" / "run" / "bpe" / "vocabulary.model").tags) == ["<2xx>", "<2zz>"]


def test_tags_of_some_corpora_alone_may_be_left_out(toys: Path, tmp_path: Path) -> None:
    """As of text that was translated back (Caswell et al. 2019): only the invented corpus has a tag."""
    shutil.copytree(toys, tmp_path / "toys", ignore=shutil.ignore_patterns("run"))
    changes = ["data.train.0.tag=", "data.valid.0.tag=", "data.test.0.tag=", "train.steps=1", "average.count=1"]
    list(run_stages(recipe(tmp_path / "toys", *changes), RunFolder(tmp_path / "toys" / "run"), choose(last="average")))
    some = load_translator(tmp_path / "toys" / "run", device="cpu")
    assert len(some.translate(["ab"])) == len(some.translate(["ab"], tag="<2yy>")) == 1
    assert "needs_tag" not in (tmp_path / "toys" / "run" / "model" / "model.json").read_text()


def test_fine_tuning_adds_tags_behind_the_parents_pieces(toys: Path, tmp_path: Path) -> None:
    shutil.copytree(toys, tmp_path / "toys")
    folder = tmp_path / "toys"
    changes = [
        "data.train.1.tag=<2zz>", "data.valid.1.tag=<2zz>", f"train.start_from={folder / 'run'}",
        "train.steps=1", "train.schedule.peak=1e-30", "average.count=1", "train.validate_every=1",
    ]  # fmt: skip
    run = RunFolder(folder / "tuned")
    events: list[Event] = list(run_stages(recipe(folder, *changes), run, choose(last="translate")))
    old, new = (Vocabulary.load(folder / name / "model" / "vocabulary.model") for name in ("run", "tuned"))
    assert list(new.tags) == ["<2xx>", "<2yy>", "<2zz>"] and len(new) == len(old) + 1
    before, after = load_translator(folder / "run", device="cpu"), load_translator(run.path, device="cpu")
    ours, theirs = after.model.output_weight_VD, before.model.output_weight_VD
    assert ours[: len(old)].equal(theirs) and ours[len(old)].abs().sum() > 0
    assert after.rescore(["ab"], ["ab"], tag="<2zz>")[0].score != before.rescore(["ab"], ["ab"], tag="<2yy>")[0].score
    assert read_description(run.model).needs_tag
    assert ("tags", "<2xx>, <2yy>, <2zz>; every line to translate needs one") in about(run.path)
    assert "`<2zz>`; every line to translate needs one" in (run.model / "README.md").read_text()
    assert any(isinstance(event, Validation) for event in events)


def test_a_temperature_goes_on_bit_for_bit_and_its_change_is_told(toys: Path, tmp_path: Path) -> None:
    shutil.copytree(toys, tmp_path / "toys", ignore=shutil.ignore_patterns("run"))
    folder = tmp_path / "toys"
    (folder / "copy.xx").write_text("".join((folder / "copy.xx").read_text().splitlines(True)[:9]))
    (folder / "few.xx").write_text("".join((folder / "a.xx").read_text().splitlines(True)[:9]))

    def perform(run: str, *changes: str) -> list[Event]:
        own = recipe(folder, "data.train.0.source=few.xx", "train.corpus_temperature=5", *changes)
        return list(run_stages(own, RunFolder(folder / run), choose(last="train")))

    told = [event.text for event in perform("whole", "train.steps=9") if isinstance(event, Notice)]
    few, many = (one["kept"] for one in read_json(folder / "whole" / "preprocess" / "report.json")["corpora"])
    share = few**0.2 / (few**0.2 + many**0.2)
    assert few < 10 and any(f"{100 * share:.1f} % of all" in text for text in told)
    perform("broken", "train.steps=3")
    perform("broken", "train.steps=9")
    last = "checkpoints/step-00000009/model.safetensors"
    assert (folder / "whole" / last).read_bytes() == (folder / "broken" / last).read_bytes()
    cautions = [
        e.text for e in perform("whole", "train.steps=10", "train.corpus_temperature=2") if isinstance(e, Caution)
    ]
    assert any("another order" in text for text in cautions)


@pytest.mark.slow
def test_one_model_learns_both_tasks_and_does_the_one_that_is_asked_for(tmp_path: Path) -> None:
    """Under <2xx> every word gets an x before it, under <2yy> a y: never seen in training, always as asked."""
    chance = random.Random(5)
    words = ["".join(letters) for letters in itertools.product("bdgk", "aeo", "lm")]
    sources = [" ".join(chance.choices(words, k=chance.randint(1, 4))) for _ in range(3000)]
    tagged.write(tmp_path)
    for name, lines in (("train", sources[:2900]), ("valid", sources[2900:])):
        for mark in ("", "x", "y"):
            text = "".join(" ".join(mark + word for word in line.split()) + "\n" for line in lines)
            (tmp_path / f"{name}{mark}").write_text(text)
    files = [
        f"data.{where}.{i}.{key}"
        for where in ("train", "valid", "test")
        for i in (0, 1)
        for key in ("source", "target")
    ]
    names = ["train", "trainx", "train", "trainy", *(["valid", "validx", "valid", "validy"] * 2)]
    changes = [f"{key}={name}" for key, name in zip(files, names, strict=True)]
    changes += ["train.steps=1000", "train.batch_tokens=1024", "train.validate_every=1000", "train.save_every=500"]
    changes += [
        "model.width=48",
        "model.feedforward=96",
        "model.attention.heads=4",
        "model.dropout=0.0",
        "average.count=1",
    ]
    changes += ["bpe.size=320", "train.label_smoothing=0", "train.valid_lines=100"]
    run = RunFolder(tmp_path / "run")
    list(run_stages(recipe(tmp_path, *changes), run, choose(last="average")))
    translator = load_translator(run.path, device="cpu")
    asked = [Request(line, tag=tag) for line in sources[2900:2950] for tag in ("<2xx>", "<2yy>")]
    found = translator.translate(asked)
    assert all(word[0] == request.tag[2] for request, text in zip(asked, found, strict=True) for word in text.split())
    expected = [" ".join(request.tag[2] + word for word in request.source.split()) for request in asked]
    assert sum(map(str.__eq__, found, expected)) >= 0.95 * len(expected)
