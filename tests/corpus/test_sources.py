"""Formats of parallel text, and the quick look at them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from nmt.corpus.config import PlainConfig, SourceConfig, TestSetConfig, TsvConfig
from nmt.corpus.lines import open_lines
from nmt.corpus.sources.source import check_source, check_test_set
from nmt.errors import DataError

PAIRS = [("bal", "kor"), ("", "dem"), ("gom ban", "\u2028"), ("é", "ß")]


def write(path: Path, lines: list[str]) -> Path:
    with open_lines(path) as out:
        for line in lines:
            out.write(line)
    return path


def configs(folder: Path) -> list[PlainConfig | TsvConfig]:
    return [
        PlainConfig(
            source=write(folder / "a.x.gz", [pair[0] for pair in PAIRS]),
            target=write(folder / "a.y.zst", [pair[1] for pair in PAIRS]),
        ),
        TsvConfig(file=write(folder / "a.tsv.xz", ["\t".join(pair) for pair in PAIRS])),
        TsvConfig(
            file=write(folder / "b.tsv", [f'x\t{t}\t"\t{s}\t' for s, t in PAIRS]), source_column=4, target_column=2
        ),
    ]


def test_every_kind_gives_the_same_pairs_each_time(tmp_path: Path) -> None:
    for config in configs(tmp_path):
        source = config.build()
        assert list(source.pairs()) == list(source.pairs()) == PAIRS
        assert source.count() == len(PAIRS)
        assert check_source(config) == []


def test_a_table_with_a_file_is_a_tsv_and_any_other_a_pair_of_files() -> None:
    adapter: TypeAdapter[PlainConfig | TsvConfig] = TypeAdapter(SourceConfig)
    assert isinstance(adapter.validate_python({"file": "a.tsv"}), TsvConfig)
    assert isinstance(adapter.validate_python({"source": "a", "target": "b"}), PlainConfig)


@pytest.mark.parametrize(("sources", "targets"), [(3, 5), (5, 3), (0, 1), (2, 0)])
def test_sides_out_of_step_are_an_error_with_both_files_and_counts(tmp_path: Path, sources: int, targets: int) -> None:
    config = PlainConfig(
        source=write(tmp_path / "a.x", ["bal"] * sources), target=write(tmp_path / "a.y", ["kor"] * targets)
    )
    wanted = f"{tmp_path / 'a.x'} has {sources} lines, {tmp_path / 'a.y'} has {targets}"
    for read in (lambda: list(config.build().pairs()), config.build().count):
        with pytest.raises(DataError) as caught:
            read()
        assert caught.value.problem.startswith(wanted)
    assert [problem.startswith(wanted) for problem in check_source(config)] == [True]


def test_a_missing_column_is_an_error_with_file_and_line(tmp_path: Path) -> None:
    config = TsvConfig(file=write(tmp_path / "a.tsv", ["bal\tkor", "dem"]))
    with pytest.raises(DataError, match=r"a\.tsv:2: has 1 tab-separated columns; column 2 is asked for"):
        list(config.build().pairs())
    assert "a.tsv:2" in check_source(config)[0]


def test_missing_files_and_bad_bytes_are_found(tmp_path: Path) -> None:
    good, bad = write(tmp_path / "good", ["bal"]), tmp_path / "bad"
    bad.write_bytes(b"\xff\n")
    assert "missing: does not exist" in check_source(PlainConfig(source=good, target=tmp_path / "missing"))[0]
    assert "bad:1: byte 1" in check_source(PlainConfig(source=bad, target=good))[0]
    assert "bad:1: byte 1" in check_test_set(TestSetConfig(source=good, target=(good, bad)))[0]


def test_references_of_another_length_are_found(tmp_path: Path) -> None:
    two, three = write(tmp_path / "two", ["bal"] * 2), write(tmp_path / "three", ["bal"] * 3)
    assert check_test_set(TestSetConfig(source=two, target=(two,))) == []
    assert "three has 3" in check_test_set(TestSetConfig(source=two, target=(two, three)))[0]


def test_bad_bytes_of_both_sides_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xff\n")
    tally: Counter[str] = Counter()
    config = PlainConfig(source=tmp_path / "a", target=tmp_path / "a")
    assert list(config.build().pairs("replace", tally)) == [("\ufffd", "\ufffd")]
    assert tally["bad bytes"] == 2


def test_a_pipe_is_not_counted_since_that_would_use_it_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert PlainConfig(source=tmp_path / "pipe", target=tmp_path / "pipe").build().count() is None
