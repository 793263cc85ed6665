"""Context in ids: whole sentences and separators, or as much of the newest as there is room for."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from nmt.subwords.config import SubwordConfig
from nmt.subwords.context import context_ids
from nmt.subwords.tags import tags_before
from nmt.subwords.vocabulary import SEPARATOR, Vocabulary

END = 9
sentences = st.lists(st.lists(st.integers(4, 8), max_size=4), max_size=4)


@given(before=sentences, room=st.integers(-3, 30))
def test_the_oldest_ids_go_first_and_no_separator_stands_alone(before: list[list[int]], room: int) -> None:
    written = "".join("".join(map(str, one)) + "|" for one in before if one)
    while len(written) > max(room, 0) or written.startswith("|"):
        written = written[1:]
    ids = context_ids(before, END, room)
    assert "".join("|" if i == END else str(i) for i in ids) == written


@given(tag=st.sampled_from([[], [10]]), before=sentences, own=st.lists(st.integers(4, 8), max_size=4))
def test_what_stands_before_a_sentence_is_known_by_its_last_reserved_id(
    tag: list[int], before: list[list[int]], own: list[int]
) -> None:
    lead = [*tag, *context_ids(before, END, 99)]
    assert tags_before([*lead, *own], frozenset({END, 10})) == len(lead)
    assert tags_before(own, frozenset({END, 10})) == tags_before([*lead, *own], frozenset()) == 0


def test_no_text_becomes_the_separator_and_it_is_no_tag(tmp_path: Path) -> None:
    (tmp_path / "text").write_text(f"{SEPARATOR} ab {SEPARATOR}{SEPARATOR} cd\n" * 20)
    list(SubwordConfig(size=300).learn([tmp_path / "text"], tmp_path / "model", 1, ("<2de>", SEPARATOR)))
    vocabulary = Vocabulary.load(tmp_path / "model")
    text = f"{SEPARATOR}ab {SEPARATOR}"
    assert vocabulary.separator == len(vocabulary) - 1 == vocabulary.tags["<2de>"] + 1 and len(vocabulary.tags) == 1
    assert vocabulary.separator not in vocabulary.encode(text)
    assert vocabulary.decode(vocabulary.encode(text)) == text
    assert vocabulary.decode([vocabulary.separator]) == ""
