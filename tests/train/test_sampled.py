"""Subwords drawn anew in every epoch: reproducible, lossless, within the limits, the same for all processes."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from nmt.batches.buckets import BatchOrder
from nmt.batches.shards import Shard, write_shard
from nmt.errors import DataError
from nmt.subwords.config import SubwordConfig
from nmt.subwords.vocabulary import Vocabulary
from nmt.train import sampled
from nmt.train.data import Pairs
from nmt.train.ranks import Ranks
from nmt.train.sampled import SampledPairs, Side, epochs

LINES = [
    f"the {a} {b} of the river  is {a}er than a {c}" for a in ("new", "slow") for b in ("mill", "bed") for c in "xyz"
]
ODD = ["", "  two  spaces ", "日本 <s> \u2581x", "é naïve"]


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def vocabulary(request, tmp_path_factory) -> Vocabulary:
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "text").write_text("".join(line + "\n" for line in LINES * 9))
    for _ in SubwordConfig(kind=request.param, size=330).learn([folder / "text"], folder / "model", 1):
        pass
    return Vocabulary.load(folder / "model")


def side(folder: Path, vocabulary: Vocabulary, longest: int = 99, lines: list[str] = LINES) -> Side:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "text").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    write_shard(folder / "plain", vocabulary.encode_many(lines), len(vocabulary))
    return Side(folder / "text", vocabulary, Shard.open(folder / "plain"), longest)


def drawn(of: Side, path: Path, seed: int, alpha: float = 0.3) -> list[list[int]]:
    of.write(path, alpha, seed)
    return [ids.tolist() for ids in Shard.open(path)]


# --- the draws themselves ---


def test_draws_are_a_function_of_the_seed_and_lose_nothing(vocabulary: Vocabulary) -> None:
    texts = LINES + ODD
    first = vocabulary.sample_many(texts, 0.3, 5)
    assert vocabulary.sample_many(texts, 0.3, 6) != first
    assert vocabulary.sample_many(texts, 0.3, 5) == first != vocabulary.encode_many(texts)
    assert [vocabulary.decode(ids) for ids in first] == texts
    assert vocabulary.sample_many([], 0.3, 5) == []


def test_draws_on_many_threads_at_once_are_those_of_one(vocabulary: Vocabulary) -> None:
    found: dict[int, list[list[int]]] = {}

    def draw(seed: int) -> None:
        found[seed] = vocabulary.sample_many(LINES * 20, 0.3, seed)

    threads = [threading.Thread(target=draw, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[seed] == vocabulary.sample_many(LINES * 20, 0.3, seed) for seed in range(8))


def test_no_dropout_is_the_encoding_and_more_makes_more_pieces(vocabulary: Vocabulary) -> None:
    if "bpe" not in str(vocabulary.path):
        pytest.skip("a unigram model's alpha is another thing")
    pieces = [sum(map(len, vocabulary.sample_many(LINES * 9, alpha, 1))) for alpha in (1e-6, 0.1, 0.5, 0.999999)]
    assert pieces[0] == sum(map(len, vocabulary.encode_many(LINES * 9)))
    assert sorted(pieces) == pieces and pieces[0] < pieces[1] < pieces[2]
    assert pieces[3] == 9 * sum(len(line) + 1 for line in LINES), (
        "one for each character, and for the first word's mark"
    )


# --- a side and an epoch ---


def test_sentences_that_become_too_long_stay_as_they_are(vocabulary: Vocabulary, tmp_path: Path) -> None:
    lines = [" ".join(LINES[:count]) for count in (1, 2, 3) for _ in range(20)]
    plain = vocabulary.encode_many(lines)
    longest = len(plain[40]) - 1
    found = drawn(side(tmp_path, vocabulary, longest, lines), tmp_path / "drawn", 1, alpha=0.05)
    assert [vocabulary.decode(ids) for ids in found] == lines
    assert found[:20] != plain[:20] and found[20:40] != plain[20:40] and found[40:] == plain[40:]
    for ids, own in zip(found, plain, strict=True):
        assert len(ids) <= longest or ids == own
        assert len(own) <= longest or ids == own


def test_each_block_of_rows_has_a_seed_of_its_own(vocabulary: Vocabulary, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sampled, "ROWS", len(LINES))
    found = drawn(side(tmp_path, vocabulary, lines=LINES * 2), tmp_path / "drawn", 1)
    assert found[: len(LINES)] != found[len(LINES) :]
    assert found[: len(LINES)] == drawn(side(tmp_path / "half", vocabulary), tmp_path / "half" / "drawn", 1)


@pytest.mark.parametrize("lines", [LINES[:-1], [*LINES, "more"]], ids=["less", "more"])
def test_text_of_other_lines_than_the_shards_is_refused(lines: list[str], vocabulary: Vocabulary, tmp_path) -> None:
    of = side(tmp_path, vocabulary)
    of.text.write_text("".join(line + "\n" for line in lines))
    with pytest.raises(DataError, match="its lines are not those"):
        of.write(tmp_path / "drawn", 0.3, 1)


class Waiting(Ranks):
    """Another process, for which rank 0 has made what is asked for."""

    rank, size = 1, 2

    def first(self, make):
        return None


def test_epochs_are_the_same_whenever_and_whoever_asks(vocabulary: Vocabulary, tmp_path: Path) -> None:
    sides = {name: side(tmp_path / name, vocabulary) for name in ("source", "target")}

    def ids(shards: tuple[Shard, Shard]) -> list[list[list[int]]]:
        return [[ids.tolist() for ids in shard] for shard in shards]

    with epochs(tmp_path / "sampled", sides, 0.3, 7, Ranks()) as made:
        first, second = ids(made.take(0)), ids(made.take(1))
        other = ids(sampled.Epochs(tmp_path / "sampled", sides, 0.3, 7, Waiting()).take(1))
        assert not list((tmp_path / "sampled").glob("epoch-00001*")), "what is past is removed"
    assert not (tmp_path / "sampled").exists()
    with epochs(tmp_path / "sampled", sides, 0.3, 7, Ranks()) as made:  # gone on in the second epoch
        assert ids(made.take(1)) == second == other
    assert first != second and first[0] != first[1]


def test_batches_are_planned_with_the_lengths_that_there_are(vocabulary: Vocabulary, tmp_path: Path) -> None:
    sides = {name: side(tmp_path / name, vocabulary, 39) for name in ("source", "target")}
    limits = {"batch_tokens": 90, "accumulate": 2, "max_source_tokens": 40, "max_target_tokens": 40, "seed": 3}

    def order(source: np.ndarray, target: np.ndarray) -> BatchOrder:
        return BatchOrder(source, target, **limits)

    shards = [of.plain for of in sides.values()]
    plain = Pairs(*shards, order(shards[0].lengths, shards[1].lengths), bos=2, eos=3, pad=0)
    with epochs(tmp_path / "sampled", sides, 0.3, 7, Ranks()) as made:
        pairs = SampledPairs(plain, made, order)
        seen = []
        for epoch in (0, 1, 1):
            batches = [rows for update in pairs.updates(epoch) for rows in update]
            assert Counter(int(row) for rows in batches for row in rows) == Counter(range(len(LINES)))
            loaded = [pairs.load(rows) for rows in batches]
            assert all(max(batch.src_BS.numel(), batch.out_BT.numel()) <= 90 for batch in loaded)
            seen.append([batch.src_BS.tolist() for batch in loaded])
    assert seen[0] != seen[1] == seen[2]


def test_what_fails_in_the_background_is_raised_where_the_epoch_is_asked_for(vocabulary, tmp_path: Path) -> None:
    sides = {name: side(tmp_path / name, vocabulary) for name in ("source", "target")}
    with epochs(tmp_path / "sampled", sides, 0.3, 7, Ranks()) as made:
        made.take(0)
        made.take(1)
        sides["target"].text.write_text("")
        with pytest.raises(DataError, match="its lines are not those"):
            for epoch in (2, 3, 4):
                made.take(epoch)
