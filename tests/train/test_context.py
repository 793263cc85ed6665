"""The sentences before a source, from the recipe to the translation."""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from train import contextual
from train.runs import recipe

from nmt.batches.batch import collate
from nmt.batches.drawn import Side
from nmt.batches.shards import Shard
from nmt.checkpoint.ensemble import load_together
from nmt.checkpoint.layout import Description, read_description
from nmt.checkpoint.load import load_translator
from nmt.checkpoint.report import about
from nmt.errors import ModelError, NmtError
from nmt.recipe import dump, read
from nmt.search.control.request import Request
from nmt.search.control.rerank import Rescoring
from nmt.search.force import force
from nmt.search.translate import Translator
from nmt.stages.check import problems
from nmt.stages.manifest import staleness
from nmt.stages.methods import aligned
from nmt.stages.run import choose, run_stages
from nmt.stages.stage import STAGES, RunFolder
from nmt.stages.train import training_pairs
from nmt.stages.validation import held_out
from nmt.subwords.vocabulary import SEPARATOR, Vocabulary
from nmt.train.config import GuidedAlignmentConfig
from nmt.train.guided import AlignedBatch

LINES = ["bal dem", "gol", "", "kel dam bel", f"{SEPARATOR} gol", "dal " * 60, "gom kam"]
SHORT = ("train.max_source_tokens=40", "train.steps=2", "train.validate_every=9", "translate.max_extra_tokens=3")
BEFORE = [(), (LINES[0],), (), (), (LINES[3],), (LINES[4],), (LINES[5],)]


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a few updates: its noise depends on all it reads."""
    folder = tmp_path_factory.mktemp("context")
    contextual.write(folder)
    list(run_stages(recipe(folder, *SHORT), RunFolder(folder / "run"), choose()))
    return folder


@pytest.fixture(scope="module")
def translator(toys: Path) -> Translator:
    return load_translator(toys / "run", device="cpu")


def found(translator: Translator, lines: Sequence[str | Request], **settings: object) -> list[tuple[str, float]]:
    return [(one.text, one.score) for one in translator.stream(lines, **settings)]  # type: ignore[arg-type]


def read_by(translator: Translator, context: Sequence[str], line: str) -> list[int]:
    """The ids of a line after its context, put together by hand."""
    vocabulary = translator.source_vocabulary
    assert vocabulary.separator is not None
    before = [[*vocabulary.encode(text), vocabulary.separator] for text in context]
    return [*itertools.chain.from_iterable(before), *vocabulary.encode(line)]


def test_shards_hold_context_separator_and_sentence_and_targets_their_sentence_only(toys: Path) -> None:
    run = RunFolder(toys / "run")
    vocabulary = Vocabulary.load(run.bpe / "vocabulary.model")
    texts = [(run.preprocess / f"train.{name}").read_text().splitlines() for name in ("source", "context", "target")]
    source, target = (Shard.open(run.shards / f"train.{side}") for side in ("source", "target"))
    assert len(source) == len(texts[0]) == len(texts[1]) > 40
    for i, (line, before, out) in enumerate(zip(*texts, strict=True)):
        context = [*vocabulary.encode(before), vocabulary.separator] if before else []
        own = vocabulary.encode(line)
        assert source[i].tolist() == [*context[max(len(context) + len(own) - 39, 0) :], *own]
        assert target[i].tolist() == vocabulary.encode(out)
    assert any(not before for before in texts[1]) and max(source.lengths) <= 39


@pytest.mark.parametrize("beam", [1, 3])
def test_lines_follow_each_other_as_if_each_brought_its_context(beam: int, translator: Translator) -> None:
    given = [Request(line, context=context) for line, context in zip(LINES, BEFORE, strict=True)]
    assert found(translator, LINES, beam=beam) == found(translator, given, beam=beam)
    alone = found(translator, [Request(line, context=()) for line in LINES], beam=beam)
    both = zip(found(translator, given, beam=beam), alone, strict=True)
    differ = [one[1] != pytest.approx(other[1], abs=1e-5) for one, other in both]
    assert differ == [False, True, False, False, True, False, True]  # a line that is split has no room for any


def test_what_a_line_brings_settles_its_translation_whatever_stands_around_it(translator: Translator) -> None:
    given = [Request(line, context=context) for line, context in zip(LINES, BEFORE, strict=True)]
    together = found(translator, given)
    places = random.Random(3).sample(range(len(given)), len(given))
    for settings in ({"batch_lines": 1}, {"batch_tokens": 60, "workers": 2, "buffer_lines": 9}):
        shuffled = found(translator, [given[i] for i in places], **settings)
        for i, (text, score) in zip(places, shuffled, strict=True):
            assert text == together[i][0] and score == pytest.approx(together[i][1], abs=1e-4)
    assert found(translator, LINES, buffer_lines=1) == found(translator, LINES)


def test_scores_are_those_of_ids_put_together_by_hand(translator: Translator) -> None:
    lines, befores = [*LINES[:2], *LINES[3:5]], [*BEFORE[:2], *BEFORE[3:5]]
    target, marks = translator.target_vocabulary, {"bos": 2, "eos": 3, "pad": 0}
    by_search = found(translator, [lines[0], lines[1], "", *lines[2:]], length_penalty="none")
    requests = [Request(line, context=context) for line, context in zip(lines, befores, strict=True)]
    texts = [text for text, _ in by_search[:2] + by_search[3:]]
    scored = translator.rescore(requests, texts)
    again = translator.rescore([lines[0], lines[1], "", *lines[2:]], [*texts[:2], "", *texts[2:]])
    assert [one.log_probability for one in again[:2] + again[3:]] == [one.log_probability for one in scored]
    for line, context, text, one in zip(lines, befores, texts, scored, strict=True):
        batch = collate([read_by(translator, context, line)], [target.encode(text)], **marks)
        (gains,) = force(translator.model.eval(), batch, target.pad)
        assert one.log_probability == pytest.approx(sum(gains), abs=1e-4)
    assert scored[1].log_probability != pytest.approx(translator.rescore([lines[1]], [texts[1]])[0].log_probability)


def test_the_oldest_context_is_shortened_first_and_told_of_only_where_the_line_is_split(translator: Translator) -> None:
    line, long = "gol dem", "bal dem kel " * 30
    own = translator.source_vocabulary.encode(line)
    request = Request(line, context=(long,))
    limits = (len(own) + 1, len(own) + 2, len(own) + 9, 39)
    parts = [translator._tasks([request], 0, translator._settings({"max_source_tokens": most}))[0] for most in limits]
    whole = read_by(translator, [long], line)
    for task, most in zip(parts, (0, 0, 8, 38 - len(own)), strict=True):
        (part,) = task.parts
        assert part.ids == whole[len(whole) - len(own) - most :] and part.lead == most and not task.cautions
    (split,) = translator.stream([Request(long, context=(line,))])
    assert len(split.cautions) == 1 and "split into" in split.cautions[0]


def test_links_words_and_markup_are_of_the_sentence_itself(translator: Translator) -> None:
    settings = {"alignment": True, "replace_unk": True, "coverage_penalty": 0.2}
    for one in translator.stream(LINES, **settings):  # type: ignore[arg-type]
        source, target = len(one.source.split()), len(one.text.split())
        assert all(i < source and j < target for i, j in one.best.alignment or ())
    marked, plain = ["<b>bal</b> dem", "gol <i>kam</i>"], ["bal dem", "gol kam"]
    with_tags = list(translator.stream([Request(line, markup=True) for line in marked]))
    assert [one.score for one in with_tags] == [score for _, score in found(translator, plain)]
    assert all(one.text.count("<") == 2 for one in with_tags)
    first = Request("dem", context=("x",), require=("bal",), prefix="gol")
    assert found(translator, [first])[0][0].startswith("gol")


def test_context_that_does_not_fit_is_refused(toys: Path, translator: Translator) -> None:
    with pytest.raises(TypeError, match="a list of sentences"):
        translator.translate([Request("a", context="b c")])  # type: ignore[arg-type]
    plain = Translator(
        translator.model,
        translator.source_vocabulary,
        translator.target_vocabulary,
        translator.source_cleaner,
        translator.target_cleaner,
        max_source_tokens=40,
    )
    with pytest.raises(NmtError, match="this model reads no context"):
        plain.translate([Request("a", context=("b",))])
    with pytest.raises(NmtError, match="cannot order translations"):
        Rescoring([(translator, 1.0)])


def test_models_of_unlike_context_are_no_ensemble(toys: Path, tmp_path: Path) -> None:
    model = toys / "run" / "model"
    shutil.copytree(model, tmp_path / "other")
    text = (model / "model.json").read_text()
    (tmp_path / "other" / "model.json").write_text(text.replace('"context_sentences": 1', '"context_sentences": 2'))
    with pytest.raises(ModelError, match="has another context than"):
        load_together([model, tmp_path / "other"], "cpu")
    assert load_together([model, model], "cpu").context.sentences == 1


def test_the_model_folder_tells_and_one_without_does_not(toys: Path) -> None:
    description = read_description(toys / "run" / "model")
    assert description.context_sentences == 1
    told = "the source sentence before each one; a blank line begins a new document"
    assert ("context", told) in about(toys / "run") and told in (toys / "run" / "model" / "README.md").read_text()
    without = description.model_copy(update={"context_sentences": 0}).model_dump(mode="json")
    assert "context_sentences" not in without and Description.model_validate(without).context_sentences == 0


def test_validation_and_tests_are_translated_as_documents(toys: Path, translator: Translator) -> None:
    run, resolved = RunFolder(toys / "run"), recipe(toys)
    lines = (toys / "valid.en").read_text().splitlines()
    expected = translator.translate(lines)
    assert (run.translations / "test.de").read_text().splitlines() == expected
    held = held_out(resolved.data.valid_sets[0], resolved)
    assert translator.translate(held.sources[2:9]) == expected[2:9]  # a process translates a share
    assert held.references == (toys / "valid.de").read_text().splitlines()


def test_stages_are_stale_by_what_context_depends_on(toys: Path) -> None:
    run = RunFolder(toys / "run")
    assert not any(staleness(STAGES[name], recipe(toys, *SHORT), run) for name in ("preprocess", "bpe"))
    shorter = recipe(toys, *SHORT, "train.max_source_tokens=30")
    assert staleness(STAGES["bpe"], shorter, run) == ["train.max_source_tokens changed 40 → 30"]
    none = recipe(toys, "preprocess.context_sentences=0")
    assert staleness(STAGES["preprocess"], none, run)
    assert {"train.max_source_tokens", "preprocess.context_sentences"}.isdisjoint(STAGES["bpe"].settings(none))
    assert read_back(toys) and not [text for text in problems(recipe(toys), run) if "[bpe]" not in text]


def read_back(folder: Path) -> bool:
    (folder / "again.toml").write_text(dump(recipe(folder)))
    return read(folder / "again.toml") == recipe(folder)


def test_drawn_subwords_leave_the_context_as_it_is(toys: Path, tmp_path: Path) -> None:
    run = RunFolder(toys / "run")
    vocabulary = Vocabulary.load(run.bpe / "vocabulary.model")
    side = Side(run.preprocess / "train.source", run.bpe / "vocabulary.model", run.shards / "train.source", 99)
    side.draw(tmp_path / "drawn", 0.5, 3)
    plain, drawn = Shard.open(run.shards / "train.source"), Shard.open(tmp_path / "drawn")
    changed = 0
    for i in range(len(plain)):
        own, other = plain[i].tolist(), drawn[i].tolist()
        lead = own[: own.index(vocabulary.separator) + 1] if vocabulary.separator in own else []
        assert other[: len(lead)] == lead
        assert vocabulary.decode(other[len(lead) :]) == vocabulary.decode(own[len(lead) :])
        changed += own != other
    assert changed > 10


def test_links_of_training_pairs_count_from_the_sentence(toys: Path, tmp_path: Path) -> None:
    run, own = RunFolder(toys / "run"), recipe(toys, "train.max_source_tokens=40")
    vocabulary = Vocabulary.load(run.bpe / "vocabulary.model")
    count = len(Shard.open(run.shards / "train.source"))
    (tmp_path / "links").write_text("0-1\n" * count)  # the first word of each source, behind the one from its context
    guide = GuidedAlignmentConfig(path=tmp_path / "links", weight=0.1)
    pairs, _ = training_pairs(own, run, vocabulary)
    own = own.model_copy(update={"train": own.train.model_copy(update={"guided_alignment": guide})})
    batch = aligned(own, run, pairs, (vocabulary, vocabulary)).load(np.arange(count))
    assert isinstance(batch, AlignedBatch)
    linked = {(row, place) for row, _, place in batch.links_L3.tolist()}
    for row, line in enumerate((run.preprocess / "train.source").read_text().splitlines()):
        ids = [i for i in batch.src_BS[row].tolist() if i != vocabulary.pad][:-1]
        lead = max((place + 1 for place, i in enumerate(ids) if i == vocabulary.separator), default=0)
        places = sorted(place for at, place in linked if at == row)
        assert vocabulary.decode([ids[place] for place in places]).strip() == line.split()[0] and places[0] == lead


@pytest.mark.slow
def test_what_only_context_decides_is_learned_with_it_and_not_without(tmp_path: Path) -> None:
    """The first word of each target is that of the sentence before."""
    contextual.write(tmp_path, documents=500)
    changes = ["train.steps=1400", "train.batch_tokens=1024", "train.validate_every=1400", "train.save_every=700"]
    changes += ["model.width=48", "model.feedforward=96", "model.attention.heads=4", "model.dropout=0.0"]
    changes += ["average.count=1", "train.label_smoothing=0", "preprocess.drop_duplicates=false"]
    sources = (tmp_path / "valid.en").read_text().splitlines()
    wanted = (tmp_path / "valid.de").read_text().splitlines()
    right = {}
    for count in (1, 0):
        run = RunFolder(tmp_path / f"run{count}")
        own = recipe(tmp_path, *changes, f"preprocess.context_sentences={count}")
        list(run_stages(own, run, choose(last="average")))
        texts = load_translator(run.path, device="cpu").translate(sources)
        pairs = [(ours.split()[:1], one.split()[:1]) for ours, one in zip(texts, wanted, strict=True) if one]
        right[count] = sum(ours == one for ours, one in pairs) / len(pairs)
    assert right[1] > 0.9 and right[0] < 0.5
