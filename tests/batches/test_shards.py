"""A shard gives back what was written, or says that it is damaged."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.batches import shards
from nmt.batches.shards import Shard, open_shard, write_shard
from nmt.errors import DataError, OutputError


@settings(max_examples=60)
@given(st.sampled_from([5, 65536, 65537, 100_000]), st.data())
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, size: int, data: st.DataObject) -> None:
    sequences = data.draw(st.lists(st.lists(st.integers(0, size - 1), max_size=9), max_size=20))
    path = tmp_path_factory.mktemp("shard") / "train.source"
    write_shard(path, iter(sequences), size)
    shard = Shard.open(path)
    assert len(shard) == len(sequences) and shard.vocabulary_size == size
    assert shard.lengths.dtype == np.int32 and shard.lengths.tolist() == [len(s) for s in sequences]
    assert [shard[i].tolist() for i in range(len(shard))] == sequences
    shard.verify()
    assert [p.name for p in path.parent.iterdir()] == ["train.source"]


def test_ids_take_two_bytes_where_they_fit_and_four_otherwise(tmp_path: Path) -> None:
    sizes = {}
    for vocabulary in (65_536, 65_537):
        write_shard(tmp_path / "shard", [[vocabulary - 1] * 1000], vocabulary)
        sizes[vocabulary] = (tmp_path / "shard").stat().st_size
        assert Shard.open(tmp_path / "shard")[0].tolist() == [vocabulary - 1] * 1000
    assert sizes[65_537] - sizes[65_536] == 2000


def test_sentences_beyond_the_buffer_are_read_as_written(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    sequences = [generator.integers(0, 40_000, length) for length in generator.integers(0, 40_000, 100)]
    with open_shard(tmp_path / "shard", 40_000) as writer:
        writer.add(sequences[:30])
        writer.add(sequences[30:])
    shard = Shard.open(tmp_path / "shard")
    assert all(np.array_equal(shard[i], sequence) for i, sequence in enumerate(sequences))
    shard.verify()


def test_equal_sentences_give_equal_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_shard(tmp_path / name, [[1, 2], [], [3]], 10)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("position", ["outside", "negative"])
def test_an_id_outside_the_vocabulary_is_refused_and_nothing_is_written(tmp_path: Path, position: str) -> None:
    with pytest.raises(ValueError, match="outside the vocabulary of 10"):
        write_shard(tmp_path / "shard", [[1], [10 if position == "outside" else -1]], 10)
    assert list(tmp_path.iterdir()) == []


def test_an_old_shard_stays_when_writing_fails(tmp_path: Path) -> None:
    def failing() -> Iterator[list[int]]:
        yield [4]
        raise RuntimeError("the source broke")

    write_shard(tmp_path / "shard", [[1, 2, 3]], 10)
    with pytest.raises(RuntimeError, match="the source broke"):
        write_shard(tmp_path / "shard", failing(), 10)
    assert Shard.open(tmp_path / "shard")[0].tolist() == [1, 2, 3]
    assert [p.name for p in tmp_path.iterdir()] == ["shard"]


def test_a_missing_folder_is_an_output_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="nowhere"):
        write_shard(tmp_path / "nowhere" / "shard", [[1]], 10)


def test_every_cut_is_noticed_when_opening(tmp_path: Path) -> None:
    path = tmp_path / "shard"
    write_shard(path, [[1, 2, 3], [4], []], 10)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match="is damaged") as raised:
            Shard.open(path)
        assert str(path) in raised.value.problem and "\n" not in raised.value.problem and raised.value.hint
    path.write_bytes(whole + b"\0")
    with pytest.raises(DataError, match="is damaged"):
        Shard.open(path)


def test_every_changed_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "shard"
    write_shard(path, [[1, 2, 3], [4], []], 10)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(DataError):
            Shard.open(path).verify()


def test_a_missing_file_and_another_file_are_data_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        Shard.open(tmp_path / "none")
    (tmp_path / "text").write_text("plain text\n" * 100)
    with pytest.raises(DataError, match="is damaged"):
        Shard.open(tmp_path / "text")


def test_a_sentence_out_of_range_is_an_index_error(tmp_path: Path) -> None:
    write_shard(tmp_path / "shard", [[1]], 10)
    for index in (-1, 1):
        with pytest.raises(IndexError):
            Shard.open(tmp_path / "shard")[index]


def test_writing_takes_no_more_memory_for_more_sentences(tmp_path: Path) -> None:
    def peak(sentences: int) -> int:
        tracemalloc.start()
        write_shard(tmp_path / "shard", ([7] * 50 for _ in range(sentences)), 10)
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return memory

    few, many = peak(30_000), peak(90_000)
    assert many < 1.1 * few


@pytest.mark.parametrize("large", [1 << 30, 0], ids=["mapped", "far"])
def test_sentences_are_taken_together_as_one_by_one(large: int, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(shards, "_LARGE", large)
    generator = np.random.default_rng(2)
    sequences = [generator.integers(0, 100, length).tolist() for length in generator.integers(0, 9, 333)]
    write_shard(tmp_path / "shard", sequences, 100)
    shard = Shard.open(tmp_path / "shard")
    rows = generator.integers(0, 333, 500)
    assert [ids.tolist() for ids in shard.take(rows)] == [sequences[row] for row in rows]
    assert [shard[i].tolist() for i in range(333)] == sequences
    assert shard.counts().tolist() == np.bincount([i for ids in sequences for i in ids], minlength=100).tolist()
    assert shard.take(rows[:0]) == []
    for beyond in (-1, 333):
        with pytest.raises(IndexError, match=f"sentence {beyond} of 333"):
            shard.take(np.array([5, beyond]))


def test_an_open_shard_takes_little_memory(tmp_path: Path) -> None:
    write_shard(tmp_path / "shard", ([7] for _ in range(200_000)), 100)
    tracemalloc.start()
    shard = Shard.open(tmp_path / "shard")
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 0.5 * len(shard)  # bytes
