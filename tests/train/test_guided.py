"""Guided attention: the loss is its formula, it adds nothing elsewhere, and attention becomes the alignment."""

from __future__ import annotations

import shutil
from array import array
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close
from train import tagged
from train.runs import prepared, recipe
from train.toys import PAD, model, optimizer, pairs

from nmt.analysis.capture import capture
from nmt.batches.links import Links, WordsOfPieces, read_links
from nmt.batches.shards import Shard
from nmt.checkpoint.tensors import weights
from nmt.errors import DataError, RecipeError, TrainingError
from nmt.search.align import attention_BTS
from nmt.stages import bpe
from nmt.stages import train as stage
from nmt.stages.run import choose, run_stages
from nmt.stages.stage import RunFolder
from nmt.train.data import Pairs
from nmt.train.fit import fit, learn
from nmt.train.guided import AlignedBatch, AlignedPairs, GuidedObjective
from nmt.train.loss import Objective
from nmt.train.objective import objective_of
from nmt.train.optimizer import sgd
from nmt.train.rules import Guide, Rules
from nmt.train.schedule import constant
from nmt.train.state import State


def links(folder: Path, data: Pairs, every: int = 1) -> Links:
    """Of targets that are their sources reversed; only every so many pairs have any."""
    lines, sizes = [], []
    for row, ids in enumerate(data.source):
        last = len(ids) - 1
        lines.append(" ".join(f"{last - t}-{t}" for t in range(len(ids))) if row % every == 0 else "")
        sizes.append((len(ids), len(ids)))
    (folder / "links").write_text("".join(line + "\n" for line in lines))
    return read_links(folder / "links", sizes, "pieces", Path("text"))


def guided(folder: Path, every: int = 1, **changes: int) -> AlignedPairs:
    data = pairs(**changes)
    return AlignedPairs(data, links(folder, data, every), None)


@pytest.mark.parametrize("head", [None, 1])
@pytest.mark.parametrize("layer", [0, 1])
def test_the_loss_is_that_of_attention_as_analysis_sees_it(layer: int, head: int | None, tmp_path: Path) -> None:
    still = model(dropout=0.0, decoder_layers=2).double()
    batch = guided(tmp_path, every=2).load(np.arange(7))
    plain, own = Objective(still)(batch, 0.1, PAD)
    loss, nll = GuidedObjective(still, Objective, weight=0.7, layer=layer, head=head)(batch, 0.1, PAD)
    weights_BHTS = capture(still, batch)["cross"][layer]
    expected = 0.0
    for row in range(0, 7, 2):
        length = int((batch.out_BT[row] != PAD).sum()) - 1
        for t in range(length):
            looked_HS = weights_BHTS[row, :, t]
            looked_S = looked_HS.mean(0) if head is None else looked_HS[head]
            expected -= torch.log(looked_S[length - 1 - t] + 1e-9).item()
    assert_close((loss - plain).item(), 0.7 * expected)
    assert_close(nll, own)


def test_a_piece_with_many_links_shares_them() -> None:
    data = Pairs([np.array([5, 6, 7])], [np.array([8, 9])], pairs().order, bos=2, eos=3, pad=PAD)
    both = Links(array("i", [0, 0, 2, 0, 1, 1]), array("i", [3]))
    batch = AlignedPairs(data, both, None).load(np.array([0]))
    assert batch.links_L3.tolist() == [[0, 0, 0], [0, 0, 2], [0, 1, 1]] and batch.share_L.tolist() == [0.5, 0.5, 1]


def test_the_gradient_reaches_queries_and_keys_of_the_guided_layer_and_is_that_of_finite_differences(tmp_path) -> None:
    still, batch = model(dropout=0.0, decoder_layers=2).double(), guided(tmp_path).load(np.arange(4))
    objective = GuidedObjective(still, Objective, weight=2.0, layer=1)
    parameter = still.decoder.layers[1].cross_attention.query.weight

    def loss() -> torch.Tensor:
        return objective(batch, 0.1, PAD)[0]

    (gradient,) = torch.autograd.grad(loss(), parameter)
    with torch.no_grad():
        for place in ((0, 0), (3, 5)):
            kept = parameter[place].item()
            parameter[place] = kept + 1e-5
            up = loss()
            parameter[place] = kept - 1e-5
            assert_close((up - loss()) / 2e-5, gradient[place], rtol=1e-5, atol=1e-7)
            parameter[place] = kept


@pytest.mark.parametrize("cuts", [2, 5])
def test_accumulated_batches_update_as_one_batch_does(cuts: int, tmp_path: Path) -> None:
    data, updated = guided(tmp_path, every=3, count=20, batch_tokens=1000), []
    rules = Rules(guide=Guide(weight=0.5))
    for parts in (1, cuts):
        one = model(dropout=0.0).double()
        learn(
            one, sgd(one), [data.load(r) for r in np.array_split(np.arange(20), parts)], rate=0.5, rules=rules, pad=PAD
        )
        updated.append(weights(one))
    assert_close(updated[0], updated[1], atol=1e-9, rtol=0)
    plain = model(dropout=0.0).double()
    learn(plain, sgd(plain), [data.load(np.arange(20))], rate=0.5, rules=Rules(), pad=PAD)
    assert not torch.equal(weights(plain)["encoder.embedding.weight"], updated[0]["encoder.embedding.weight"])


def test_with_two_passes_and_layers_left_out_it_is_the_mean_of_passes_or_nothing(tmp_path: Path) -> None:
    batch = guided(tmp_path).load(np.arange(5))
    still = model(dropout=0.0, layer_drop=0.5).double().train()
    once, twice = (objective_of(Rules(guide=Guide(0.5), rdrop_alpha=alpha))(still) for alpha in (None, 3.0))
    plain, _ = Objective(still)(batch, 0.1, PAD)
    assert_close(once(batch, 0.1, PAD)[0], twice(batch, 0.1, PAD)[0])
    assert once(batch, 0.1, PAD)[0] > plain
    layer = still.decoder.layers[0]
    layer.left_out = True
    assert_close(once(batch, 0.1, PAD)[0], Objective(still)(batch, 0.1, PAD)[0])


def test_links_of_tagged_sources_are_those_of_the_text_behind_the_tag(tmp_path: Path) -> None:
    data, tag = pairs(12), 13
    plain = AlignedPairs(data, links(tmp_path, data), None)
    source = [np.array([tag, *ids]) if row % 2 else ids for row, ids in enumerate(data.source)]
    marked = Pairs(source, data.target, data.order, bos=2, eos=3, pad=PAD)

    def words(ids: np.ndarray) -> np.ndarray:  # each piece is a word
        return np.arange(len(ids))

    for units in (None, (words, words)):
        found = AlignedPairs(marked, links(tmp_path, data), units, {tag}).load(np.arange(12))
        expected = plain.load(np.arange(12))
        moved_L3 = expected.links_L3 + (expected.links_L3[:, :1] % 2) * torch.tensor([0, 0, 1])
        assert {*map(tuple, found.links_L3.tolist())} == {*map(tuple, moved_L3.tolist())}
        assert found.share_L.tolist() == expected.share_L.tolist()


def test_tags_are_trained_with_links_and_with_sampled_subwords(tmp_path: Path) -> None:
    tagged.write(tmp_path)
    run = RunFolder(tmp_path / "run")
    list(run_stages(recipe(tmp_path), run, choose(last="bpe")))
    sources = (run.preprocess / "train.source").read_text().splitlines()
    (tmp_path / "links").write_text("".join("0-0\n" for _ in sources))

    def losses(*changes: str) -> list[float]:
        shutil.rmtree(run.checkpoints, ignore_errors=True)
        settings = recipe(tmp_path, "train.steps=3", "train.validate_every=99", "train.valid_lines=1", *changes)
        return [event.loss for event in stage.run(settings, run) if hasattr(event, "loss")][:3]

    plain, words = losses(), losses("train.guided_alignment.path=links")
    assert words[0] > plain[0] and words[0] == pytest.approx(plain[0], rel=0.2)
    assert losses("train.guided_alignment.path=links", "train.subword_dropout=0.3") != words
    last = Shard.open(run.shards / "train.source")[-1 + len(sources)]
    (tmp_path / "links").write_text("\n".join(["0-0"] * (len(sources) - 1) + [f"{len(last) - 2}-0"]) + "\n")
    losses("train.guided_alignment.path=links", "train.guided_alignment.units=pieces")
    (tmp_path / "links").write_text("\n".join(["0-0"] * (len(sources) - 1) + [f"{len(last) - 1}-0"]) + "\n")
    with pytest.raises(DataError, match=rf"links:{len(sources)}: .* the source has {len(last) - 1} pieces"):
        losses("train.guided_alignment.path=links", "train.guided_alignment.units=pieces")


def test_a_batch_of_no_pairs_has_no_loss_and_no_gradient(tmp_path: Path) -> None:
    trained = model()
    batch = guided(tmp_path).load(np.arange(0))
    assert isinstance(batch.to("cpu"), AlignedBatch)
    loss, _ = GuidedObjective(trained, Objective, weight=1.0)(batch, 0.1, PAD)
    loss.backward()
    assert loss.item() == 0 and all(p.grad is not None and not p.grad.any() for p in trained.parameters())


def test_attention_becomes_the_alignment(tmp_path: Path) -> None:
    def error(guide: Guide | None) -> float:
        """Share of target pieces that look most at another source piece than theirs."""
        data, trained = guided(tmp_path, count=24, batch_tokens=200), model(dropout=0.0, width=16)
        rules = Rules(steps=80, guide=guide)
        list(fit(trained, optimizer(trained), data, State(), schedule=constant(1e-2, 0), rules=rules))
        batch = data.load(np.arange(24))
        best_BT = attention_BTS(trained.eval(), batch).argmax(-1)
        rows, targets, sources = batch.links_L3.T
        return (best_BT[rows, targets] != sources).float().mean().item()

    assert error(Guide(weight=1.0)) < 0.06 < 0.3 < error(None)


def test_a_layer_or_head_that_is_not_there_is_refused() -> None:
    with pytest.raises(TrainingError, match="decoder layer 3"):
        GuidedObjective(model(), Objective, weight=1.0, layer=2)
    with pytest.raises(TrainingError, match="no head 3"):
        GuidedObjective(model(), Objective, weight=1.0, head=2)


# --- the stage ---


@pytest.fixture(scope="module")
def before_training(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    prepared(folder)
    return folder


@pytest.fixture
def folder(before_training: Path, tmp_path: Path) -> Path:
    shutil.copytree(before_training, tmp_path / "toy")
    sources = (tmp_path / "toy" / "run" / "preprocess" / "train.source").read_text().splitlines()
    counts = [len(line.split()) for line in sources]
    lines = (" ".join(f"{count - 1 - t}-{t}" for t in range(count)) for count in counts)
    (tmp_path / "toy" / "links").write_text("".join(line + "\n" for line in lines))
    return tmp_path / "toy"


def test_the_recipe_guides_by_words_under_sampled_subwords_too(folder: Path) -> None:
    def losses(*changes: str) -> list[float]:
        shutil.rmtree(folder / "run" / "checkpoints", ignore_errors=True)
        settings = recipe(folder, "train.steps=3", "train.validate_every=99", *changes)
        return [event.loss for event in stage.run(settings, RunFolder(folder / "run")) if hasattr(event, "loss")][:3]

    plain, words = losses(), losses("train.guided_alignment.path=links")
    assert words[0] > plain[0]
    assert losses("train.guided_alignment.path=links", "train.subword_dropout=0.3") != words
    with pytest.raises(DataError, match=r"links:\d+: '\d+-\d+': the .* has \d+ pieces"):
        (folder / "links").write_text("99-0\n" * 120)
        losses("train.guided_alignment.path=links", "train.guided_alignment.units=pieces")


@pytest.mark.parametrize("units", ["words", "pieces"])
def test_alignments_that_do_not_fit_are_found_before_training(folder: Path, units: str) -> None:
    run = RunFolder(folder / "run")
    settings = recipe(folder, "train.guided_alignment.path=links", f"train.guided_alignment.units={units}")
    lines = (folder / "links").read_text().splitlines()
    for changed, problem in (
        ([*lines[:7], "0-0 1_1", *lines[8:]], "links:8: '1_1' is no link"),
        ([*lines[:7], "0-99", *lines[8:]], f"links:8: '0-99': the target has .* {units}"),
        (lines[:-1], f"links: has fewer lines .* they part at line {len(lines)}"),
    ):
        (folder / "links").write_text("".join(line + "\n" for line in changed))
        with pytest.raises(DataError, match=problem) as found:
            list(bpe.run(settings, run))
        assert found.value.hint
    (folder / "links").unlink()
    list(bpe.run(settings, run))  # links may be made of what it writes
    with pytest.raises(DataError, match="links: there is no such file"):
        list(run_stages(settings, run, choose()))


def test_recipes_that_cannot_be_are_refused(folder: Path) -> None:
    for change, told, hint in (
        ("layer=2", "the decoder has 1 layer$", "name one up to 1, or none for the last but one"),
        ("head=3", "a layer has 2 heads$", "name one up to 2, or none for the mean of all"),
    ):
        with pytest.raises(RecipeError, match=told) as problem:
            recipe(folder, "train.guided_alignment.path=links", f"train.guided_alignment.{change}")
        assert problem.value.hint == hint
    pieces = ("train.guided_alignment.path=links", "train.guided_alignment.units=pieces")
    with pytest.raises(RecipeError, match="leaves out merges"):
        recipe(folder, "bpe.kind=unigram", "train.subword_dropout=0.1")
    with pytest.raises(RecipeError, match="links pieces, which subword_dropout changes"):
        recipe(folder, *pieces, "train.subword_dropout=0.1")


def test_words_of_the_stages_shards_are_those_of_its_text(folder: Path) -> None:
    from nmt.subwords.vocabulary import Vocabulary

    words = WordsOfPieces(Vocabulary.load(folder / "run" / "bpe" / "vocabulary.model"))
    lines = (folder / "run" / "preprocess" / "train.source").read_text().splitlines()
    for line, ids in zip(lines, Shard.open(folder / "run" / "shards" / "train.source"), strict=True):
        assert int(words(ids).max()) + 1 == len(line.split())
