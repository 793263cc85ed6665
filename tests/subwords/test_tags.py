"""Tags get ids behind all pieces; no text is ever one, and none is ever text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.errors import RecipeError
from nmt.subwords.config import SubwordConfig
from nmt.subwords.tags import add_tags
from nmt.subwords.vocabulary import Vocabulary

TAGS = ("<2de>", "<2fr>", "<news>", "<2" + "ü" * 99 + ">")


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory: pytest.TempPathFactory) -> tuple[Vocabulary, Vocabulary]:
    """One vocabulary before and after it got tags; its text is full of what looks like tags."""
    folder = tmp_path_factory.mktemp("tags")
    (folder / "text").write_text("".join(f"<news> hello <2de> world {i} <news>\n" for i in range(50)), encoding="utf-8")
    before, after = folder / "before.model", folder / "after.model"
    list(SubwordConfig(size=330).learn([folder / "text"], before, 1))
    after.write_bytes(before.read_bytes())
    assert add_tags(after, (TAGS[0], TAGS[1], TAGS[3])) == [TAGS[0], TAGS[1], TAGS[3]]
    return Vocabulary.load(before), Vocabulary.load(after)


def test_pieces_keep_their_numbers_and_their_bytes(vocabularies: tuple[Vocabulary, Vocabulary]) -> None:
    before, after = vocabularies
    assert after.path.read_bytes().startswith(before.path.read_bytes())
    assert [after.piece(i) for i in range(len(before))] == [before.piece(i) for i in range(len(before))]
    assert after.tags == {"<2de>": len(before), "<2fr>": len(before) + 1, TAGS[3]: len(before) + 2}
    assert before.tags == {}


@settings(max_examples=150)
@given(
    text=st.lists(st.sampled_from([*TAGS, " ", "a", "<", ">", "2de", "<s>", "▁"]) | st.text(max_size=4)).map("".join)
)
def test_text_is_encoded_as_before_and_never_to_a_tag(text: str, vocabularies: tuple[Vocabulary, Vocabulary]) -> None:
    before, after = vocabularies
    ids = after.encode(text)
    assert ids == before.encode(text)
    assert not set(ids) & set(after.tags.values())
    assert after.decode([after.tags["<2de>"], *ids, after.tags["<2fr>"]]) == after.decode(ids)


def test_adding_again_changes_nothing(vocabularies: tuple[Vocabulary, Vocabulary]) -> None:
    _, after = vocabularies
    data = after.path.read_bytes()
    assert add_tags(after.path, TAGS[:2]) == [] and after.path.read_bytes() == data


def test_learning_counts_tags_and_makes_no_piece_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("".join(f"<news><news> x{i} <news>\n" for i in range(99)))
    list(SubwordConfig(size=290).learn([tmp_path / "text"], tmp_path / "model", 1, ("<news>",)))
    vocabulary = Vocabulary.load(tmp_path / "model")
    assert len(vocabulary) <= 290 and vocabulary.tags == {"<news>": len(vocabulary) - 1}
    assert vocabulary.decode(vocabulary.encode("<news> x1 <news>")) == "<news> x1 <news>"


def test_what_is_a_piece_of_text_cannot_become_a_tag(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("<<< <<< <<< a\n" * 50)
    list(SubwordConfig(size=270).learn([tmp_path / "text"], tmp_path / "model", 1))
    vocabulary = Vocabulary.load(tmp_path / "model")
    piece = next(piece for i in range(260, len(vocabulary)) if "<" in (piece := vocabulary.piece(i)))
    with pytest.raises(RecipeError, match="is a piece of text there"):
        add_tags(tmp_path / "model", [piece])
