"""One model for several languages: a tag before every source sentence, from the recipe to the translation."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from train.runs import RECIPE, recipe

from nmt.batches.shards import Shard
from nmt.checkpoint.layout import read_description
from nmt.checkpoint.load import load_translator
from nmt.errors import NmtError, RecipeError
from nmt.events import Event
from nmt.files import read_json
from nmt.recipe import dump, read
from nmt.search.control.request import Request
from nmt.search.translate import Translator
from nmt.stages.check import problems
from nmt.stages.run import choose, run_stages
from nmt.stages.stage import RunFolder
from nmt.subwords.vocabulary import Vocabulary
from nmt.train.events import Validation

SETS = """
[[data.train]]
source = "a.xx"
target = "copy.xx"
tag = "<2xx>"
[[data.train]]
source = "a.xx"
target = "back.yy"
tag = "<2yy>"
[[data.valid]]
source = "valid.xx"
target = "valid.xx.copy"
tag = "<2xx>"
[[data.valid]]
source = "valid.xx"
target = "valid.yy"
tag = "<2yy>"
target_language = "zh"
[[data.test]]
name = "copy"
source = "valid.xx"
target = "valid.xx.copy"
tag = "<2xx>"
[[data.test]]
name = "back"
source = "valid.xx"
target = "valid.yy"
tag = "<2yy>"
target_language = "zh"
"""
TEXT = RECIPE[: RECIPE.index("[[data.train]]")] + SETS + RECIPE[RECIPE.index("[bpe]") :].replace("280", "290")
LINES = ["ab cd ef", "gh", "", "<2yy> ab", "ab <2xx> cd <2yy>", "cd cd ef ef gh " * 30]


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that learns to copy and to reverse for a few updates: its noise depends on all it reads."""
    folder = tmp_path_factory.mktemp("tags")
    lines = [" ".join(words) for words in zip("abcdefgh" * 9, "bcdefg" * 12, "cdefgha" * 11, strict=False)]
    for name, text in (("a.xx", lines), ("copy.xx", lines), ("back.yy", [line[::-1] for line in lines])):
        (folder / name).write_text("".join(line + "\n" for line in text))
    held = ["x y z", "<2yy> x", "z y"]
    for name, text in (("valid.xx", held), ("valid.xx.copy", held), ("valid.yy", [line[::-1] for line in held])):
        (folder / name).write_text("".join(line + "\n" for line in text))
    (folder / "toy.toml").write_text(TEXT)
    list(run_stages(recipe(folder), RunFolder(folder / "run"), choose()))
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
    assert any(isinstance(event, Validation) for event in events)
