"""Links are read as they stand, or refused by line; pieces belong to the words that spaces separate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.batches.links import WordsOfPieces, links_of_pieces, read_links, word_counts
from nmt.errors import DataError
from nmt.subwords.config import SubwordConfig
from nmt.subwords.dropout import MergeDropout
from nmt.subwords.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory) -> Vocabulary:
    folder = tmp_path_factory.mktemp("links")
    (folder / "text").write_text("the mill by the river\nthe slower mill\na  wide space\n" * 9)
    for _ in SubwordConfig(size=310).learn([folder / "text"], folder / "model", 1):
        pass
    return Vocabulary.load(folder / "model")


def file(folder: Path, *lines: str) -> Path:
    (folder / "links").write_text("".join(line + "\n" for line in lines))
    return folder / "links"


def test_links_are_read_line_for_line(tmp_path: Path) -> None:
    links = read_links(file(tmp_path, "0-0 2-1", "", "1-0"), [(3, 2), (1, 1), (2, 1)], "words", Path("text"))
    assert [links[row].tolist() for row in range(len(links))] == [[[0, 0], [2, 1]], [], [[1, 0]]]
    assert len(read_links(file(tmp_path), [], "words", Path("text"))) == 0


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["0-0", "3-0"], "links:2: '3-0': the source has 3 words, counted from 0"),
        (["0-0", "0-2"], "links:2: '0-2': the target has 2 words"),
        (["0-0", "0:1"], "links:2: '0:1' is no link"),
        (["0-0", "-1-1"], "links:2: '-1-1' is no link"),
        (["0-0"], "links: has fewer lines than text has pairs"),
        (["0-0", "0-0", "0-0"], "links: has more lines than text has pairs"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(lines: list[str], told: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=told):
        read_links(file(tmp_path, *lines), [(3, 2), (3, 2)], "words", Path("text"))


@given(st.text("them ilrv.\u65e5\u2581\u00a0", max_size=25))
@settings(max_examples=80)
def test_the_pieces_of_a_word_spell_it(vocabulary: Vocabulary, text: str) -> None:
    for ids in (vocabulary.encode(text), MergeDropout(vocabulary, 0.5).encode(text, 1)):
        words = WordsOfPieces(vocabulary)(np.array(ids, dtype=np.int64))
        assert len(words) == len(ids) and (np.diff(words) >= 0).all()
        spelled = [
            vocabulary.decode([i for i, of in zip(ids, words, strict=True) if of == word]).strip(" ")
            for word in range(int(words.max(initial=-1)) + 1)
        ]
        assert [word for word in spelled if word] == [word for word in text.split(" ") if word]


def test_words_are_counted_as_pieces_are_told_apart(vocabulary: Vocabulary, tmp_path: Path) -> None:
    lines = ["the  mill", " by", "", "a\u00a0b c "]
    (tmp_path / "text").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    assert list(word_counts(tmp_path / "text", tmp_path / "text")) == [(2, 2), (1, 1), (0, 0), (2, 2)]


def test_a_link_of_words_is_one_of_all_their_pieces() -> None:
    source, target = np.array([0, 0, 1, 2]), np.array([0, 1, 1])
    found = links_of_pieces(np.array([[0, 1], [2, 0], [2, 0]]), source, target)
    assert sorted(map(tuple, found.tolist())) == [(0, 1), (0, 2), (1, 1), (1, 2), (3, 0)]
    assert len(links_of_pieces(np.zeros((0, 2), np.int64), source, target[:0])) == 0
