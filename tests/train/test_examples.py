"""Validation translations side by side: tables that any reader of tab-separated text takes apart again."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.search.control.request import Request
from nmt.train.examples import rewind_examples, write_examples
from nmt.train.validate import Held

TEXT = st.text(st.sampled_from("a \t\n\r\x0b\x0c\x1c\x85\u2028\u2029\0\"'"), max_size=5)


@settings(max_examples=25)
@given(rows=st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=4), count=st.integers(1, 5))
def test_a_table_has_a_line_for_each_sentence_and_a_cell_for_each_text(
    rows: list[tuple[str, str, str]], count: int, tmp_path_factory
) -> None:
    sources, references, translations = map(list, zip(*rows, strict=True))
    folder = tmp_path_factory.getbasetemp() / "examples"
    path = write_examples(folder, 7, [Held(sources, references, {})], {"": translations}, count)
    assert path is not None and path.name == "step-00000007.tsv"
    head, *lines = path.read_bytes().decode().splitlines()
    assert head.split("\t") == ["source", "reference", "translation"]
    assert len(lines) == min(count, len(rows)) and all(line.count("\t") == 2 for line in lines)


def test_several_sets_are_told_apart_by_name(tmp_path: Path) -> None:
    sets = [Held([Request("one", tag="de")], ["eins"], {}, "de"), Held(["two", "2"], ["deux", "2"], {}, "fr")]
    path = write_examples(tmp_path / "v", 3, sets, {"de": ["ein"], "fr": ["deux", "2"]}, 1)
    assert path is not None
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    assert lines == [
        ["set", "source", "reference", "translation"],
        ["de", "one", "eins", "ein"],
        ["fr", "two", "deux", "deux"],
    ]


def test_nothing_is_written_where_nothing_was_translated_or_asked_for(tmp_path: Path) -> None:
    assert write_examples(tmp_path / "v", 3, [Held(["a"], ["b"], {})], {}, 9) is None
    assert write_examples(tmp_path / "v", 3, [Held(["a"], ["b"], {})], {"": ["c"]}, 0) is None
    assert not (tmp_path / "v").exists()


def test_going_back_removes_the_tables_of_validations_that_are_made_again(tmp_path: Path) -> None:
    for step in (5, 10, 15):
        write_examples(tmp_path, step, [Held(["a"], ["b"], {})], {"": ["c"]}, 1)
    (tmp_path / ".step-00000020.tsv.7.partial").touch()
    (tmp_path / "mine.txt").touch()
    rewind_examples(tmp_path, 10)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.txt", "step-00000005.tsv", "step-00000010.tsv"]
