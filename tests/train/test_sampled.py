"""Subwords drawn anew in every epoch: reproducible, within the limits, the same for all processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from nmt.batches.buckets import BatchOrder
from nmt.batches.drawn import Drawing, Side
from nmt.batches.shards import Shard, write_shard
from nmt.errors import DataError, NmtError
from nmt.subwords.config import SubwordConfig
from nmt.subwords.dropout import MergeDropout
from nmt.subwords.tags import add_tags
from nmt.subwords.vocabulary import Vocabulary
from nmt.train import sampled
from nmt.train.data import Pairs
from nmt.train.ranks import Ranks
from nmt.train.sampled import SampledPairs, epochs

LINES = [
    f"the {a} {b} of the river  is {a}er than a {c}" for a in ("new", "slow") for b in ("mill", "bed") for c in "xyz"
]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory) -> Vocabulary:
    folder = tmp_path_factory.mktemp("sampled")
    (folder / "text").write_text("".join(line + "\n" for line in LINES * 9))
    for _ in SubwordConfig(size=330).learn([folder / "text"], folder / "model", 1):
        pass
    return Vocabulary.load(folder / "model")


def side(folder: Path, vocabulary: Vocabulary, longest: int = 99, lines: list[str] = LINES) -> Side:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "text").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    write_shard(folder / "plain", vocabulary.encode_many(lines), len(vocabulary))
    return Side(folder / "text", vocabulary.path, folder / "plain", longest)


def drawn(of: Side, path: Path, seed: int, dropout: float = 0.3) -> list[list[int]]:
    of.draw(path, dropout, seed)
    return [ids.tolist() for ids in Shard.open(path)]


def test_sentences_that_become_too_long_stay_as_they_are(vocabulary: Vocabulary, tmp_path: Path) -> None:
    lines = [" ".join(LINES[:count]) for count in (1, 2, 3) for _ in range(20)]
    plain = vocabulary.encode_many(lines)
    longest = len(plain[40]) - 1
    found = drawn(side(tmp_path, vocabulary, longest, lines), tmp_path / "drawn", 1, dropout=0.1)
    assert [vocabulary.decode(ids) for ids in found] == lines
    assert found[:20] != plain[:20] and found[20:40] != plain[20:40] and found[40:] == plain[40:]
    for ids, own in zip(found, plain, strict=True):
        assert len(ids) <= longest or ids == own


def test_a_row_is_drawn_whatever_stands_in_the_others(vocabulary: Vocabulary, tmp_path: Path) -> None:
    found = drawn(side(tmp_path, vocabulary), tmp_path / "drawn", 7)
    other = [*LINES[:3], "a", "b", *LINES[5:]]
    again = drawn(side(tmp_path / "other", vocabulary, lines=other), tmp_path / "other" / "drawn", 7)
    assert [row for row, pair in enumerate(zip(found, again, strict=True)) if pair[0] != pair[1]] == [3, 4]
    assert found[5] == MergeDropout(vocabulary, 0.3).encode(LINES[5], (7 << 64) + 5)


@pytest.mark.parametrize("lines", [LINES[:-1], [*LINES, "more"]], ids=["less", "more"])
def test_text_of_other_lines_than_the_shards_is_refused(lines: list[str], vocabulary: Vocabulary, tmp_path) -> None:
    of = side(tmp_path, vocabulary)
    of.text.write_text("".join(line + "\n" for line in lines))
    with pytest.raises(DataError, match="its lines are not those"):
        of.draw(tmp_path / "drawn", 0.3, 1)
    assert not (tmp_path / "drawn").exists()


def test_tags_stay_before_their_sentences_and_are_never_found_in_text(vocabulary: Vocabulary, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.write_bytes(vocabulary.path.read_bytes())
    add_tags(model, ["<s", "<sl", "<2de>"])  # the first two could be merged of letters, were they pieces of text
    tagged, lines = Vocabulary.load(model), ["<slow <2de> mill", *LINES]
    of = side(tmp_path, tagged, lines=lines)
    before = [[], [tagged.tags["<2de>"]], [tagged.tags["<s"]], *[[]] * (len(lines) - 3)]
    plain = [lead + ids for lead, ids in zip(before, tagged.encode_many(lines), strict=True)]
    longest = max(map(len, plain))
    of = Side(of.text, model, of.plain, longest)
    write_shard(of.plain, plain, len(tagged))
    found = drawn(of, tmp_path / "drawn", 7)
    for row, (ids, lead, line) in enumerate(zip(found, before, lines, strict=True)):
        text = ids[len(lead) :]
        assert ids[: len(lead)] == lead and not set(text) & set(tagged.tags.values())
        assert tagged.decode(text) == line and len(ids) <= longest
        assert ids == plain[row] or text == MergeDropout(tagged, 0.3).encode(line, (7 << 64) + row)
    assert found != plain
    assert drawn(of, tmp_path / "drawn", 7, dropout=1e-9) == plain


class Waiting(Ranks):
    """Another process, for which rank 0 has made what is asked for."""

    rank, size = 1, 2

    def first(self, make):
        return None


def ids(shards: tuple[Shard, Shard]) -> list[list[list[int]]]:
    return [[ids.tolist() for ids in shard] for shard in shards]


def test_epochs_are_the_same_whenever_however_and_whoever_asks(vocabulary, tmp_path: Path, monkeypatch) -> None:
    sides = {name: side(tmp_path / name, vocabulary) for name in ("source", "target")}
    folder = tmp_path / "sampled"
    with epochs(folder, sides, 0.3, 7, Ranks()) as made:
        at_once = [ids(made.take(epoch)) for epoch in range(3)]
    monkeypatch.setattr(sampled, "SMALL", 0)  # from here on by a process of its own
    with epochs(folder, sides, 0.3, 7, Ranks()) as made:  # gone on in the second epoch
        beside = [ids(made.take(epoch)) for epoch in (1, 2)]
        other = ids(sampled.Epochs(folder, sides, 0.3, 7, Waiting()).take(2))
        assert not list(folder.glob("epoch-00002*")), "what is past is removed"
    assert not folder.exists()
    assert beside == at_once[1:] and other == at_once[2]
    assert at_once[0] != at_once[1] and at_once[0][0] != at_once[0][1]


def test_batches_are_planned_with_the_lengths_that_there_are(vocabulary: Vocabulary, tmp_path: Path) -> None:
    sides = {name: side(tmp_path / name, vocabulary, 39) for name in ("source", "target")}
    limits = {"batch_tokens": 90, "accumulate": 2, "max_source_tokens": 40, "max_target_tokens": 40, "seed": 3}

    def order(source: np.ndarray, target: np.ndarray) -> BatchOrder:
        return BatchOrder(source, target, **limits)

    shards = [Shard.open(of.plain) for of in sides.values()]
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


@pytest.mark.parametrize("small", [0, 99], ids=["beside", "at once"])
def test_what_fails_while_drawing_is_raised_where_the_epoch_is_asked_for(
    small, vocabulary, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(sampled, "SMALL", small)
    sides = {name: side(tmp_path / name, vocabulary) for name in ("source", "target")}
    sides["target"].text.write_text("")
    with epochs(tmp_path / "sampled", sides, 0.3, 7, Ranks()) as made:
        with pytest.raises(DataError, match="its lines are not those") as problem:
            made.take(0)
        assert problem.value.hint == "make both again with nmt bpe RECIPE"
    assert not (tmp_path / "sampled").exists()


def test_a_signal_to_all_processes_leaves_the_drawing_to_its_parent(vocabulary: Vocabulary, tmp_path: Path) -> None:
    """From its first instant: they are sent before the process can have said what it does with signals."""
    drawing = Drawing([(side(tmp_path, vocabulary), tmp_path / "drawn.source", 0.3, 7)])
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(drawing._process.pid, number)
    drawing.wait()
    assert len(Shard.open(tmp_path / "drawn.source")) == len(LINES)


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "sys.exit()"])
def test_drawing_ends_with_its_parent_however_that_ends(end: str, vocabulary: Vocabulary, tmp_path: Path) -> None:
    of = side(tmp_path, vocabulary)
    of.text.unlink()
    os.mkfifo(of.text)  # that nobody writes into: it would be read forever
    script = f"""
import os, signal, sys
from pathlib import Path
from nmt.batches.drawn import Drawing, Side
if __name__ == "__main__":
    paths = [Path(name) for name in sys.argv[1:]]
    drawing = Drawing([(Side(*paths[:3], 99), paths[3], 0.3, 7)])
    {end}
"""
    paths = [str(path) for path in (of.text, of.vocabulary, of.plain, tmp_path / "drawn")]
    # This waits for all who could still write there, the drawing process too.
    subprocess.run([sys.executable, "-c", script, *paths], capture_output=True, timeout=60)


def test_a_process_that_was_killed_is_an_error(vocabulary: Vocabulary, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sampled, "SMALL", 0)
    sides = {name: side(tmp_path / name, vocabulary) for name in ("source", "target")}
    with epochs(tmp_path / "sampled", sides, 0.3, 7, Ranks()) as made:
        made.take(0)
        made._coming[1]._process.kill()
        made._coming[1]._process.join()
        drawn_before = all((tmp_path / "sampled" / f"epoch-00002.{name}").exists() for name in sides)
        if not drawn_before:
            with pytest.raises(NmtError, match="was killed"):
                made.take(1)
