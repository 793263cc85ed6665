"""The learner: every line counts, the same text gives the same file, and refusals are plain sentences."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.errors import DataError, NmtError, RecipeError
from nmt.events import Caution, Event
from nmt.files import sha256
from nmt.subwords.config import SubwordConfig
from nmt.subwords.vocabulary import Vocabulary

Learn = Callable[..., tuple[Vocabulary, list[Event]]]


def cautions(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Caution)]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_the_same_text_gives_the_same_bytes_in_any_folder(learned: Learn, sentences: list[str], kind: str) -> None:
    size = {"bpe": 400, "unigram": 320}[kind]
    first, _ = learned(sentences, kind=kind, size=size)
    second, _ = learned(sentences, kind=kind, size=size)
    assert first.path != second.path and sha256(first.path) == sha256(second.path)
    assert str(first.path.parent).encode() not in first.path.read_bytes()


def test_learning_says_nothing_on_stdout_and_stderr(
    learned: Learn, sentences: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    learned(sentences)
    with pytest.raises(NmtError):
        learned(sentences, size=8)
    with pytest.raises(NmtError):
        learned([])
    assert capfd.readouterr() == ("", "")


def test_a_line_of_many_thousand_bytes_is_learned_from(learned: Learn, sentences: list[str]) -> None:
    long = "rain on " * 20_000 + "ж" * 200
    vocabulary, events = learned([*sentences[:50], long], size=600)
    assert not any("<0x" in piece for piece in vocabulary.pieces("ж"))
    assert vocabulary.decode(vocabulary.encode(long)) == long
    assert not any("skip" in text for text in cautions(events))


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_text_of_long_lines_only_is_learned_from(learned: Learn, kind: str) -> None:
    lines = ["leaves" * 1000, "grey " * 1200, "x" * 70_000]
    vocabulary, _ = learned(lines, kind=kind, size=300)
    assert all(vocabulary.decode(vocabulary.encode(line)) == line for line in lines)


def test_both_texts_shape_a_shared_vocabulary(learned: Learn, sentences: list[str]) -> None:
    vocabulary, _ = learned(sentences, ["der zug fährt um zwölf"] * 50, size=600)
    assert vocabulary.unk not in vocabulary.encode("fährt zwölf")
    assert "\u2581fährt" in vocabulary.pieces("der zug fährt")


def test_a_word_that_only_the_end_of_the_text_holds_becomes_a_piece(learned: Learn, sentences: list[str]) -> None:
    vocabulary, events = learned(sentences * 15 + ["zug fährt"] * 400, size=500)
    assert vocabulary.pieces("zug") == ["\u2581zug"]
    assert not any("drawn" in text for text in cautions(events))


def test_sampling_is_seeded_even_and_said(learned: Learn) -> None:
    lines = [f"w{chr(97 + i // 100)}" for i in range(1000)]  # ten kinds of line, one after another
    first, events = learned(lines, size=300, sentences=500, seed=3)
    again, _ = learned(lines, size=300, sentences=500, seed=3)
    assert first.sha256 == again.sha256
    assert any("500 of 1,000 lines" in text for text in cautions(events))
    assert all("<0x" not in "".join(first.pieces(f"w{letter}")) for letter in "abcdefghij")


def test_another_seed_draws_other_lines(learned: Learn) -> None:
    lines = [chr(0x4E00 + i) for i in range(300)]
    kept = []
    for seed in (1, 2):
        vocabulary, _ = learned(lines, size=700, sentences=100, seed=seed)
        kept.append({line for line in lines if "<0x" not in "".join(vocabulary.pieces(line))})
    assert [len(k) for k in kept] == [100, 100] and kept[0] != kept[1]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_small_text_gives_fewer_pieces_and_a_caution(learned: Learn, sentences: list[str], kind: str) -> None:
    vocabulary, events = learned(sentences[:20], kind=kind, size=30_000)
    assert len(vocabulary) < 30_000
    assert any(f"{len(vocabulary):,}" in text and "30,000" in text for text in cautions(events))


def test_a_size_below_the_characters_is_an_error_with_the_size_that_works(learned: Learn, sentences: list[str]) -> None:
    with pytest.raises(RecipeError, match=r"\[bpe\] size = 100 is smaller than the \d+ pieces") as raised:
        learned(sentences, size=100)
    least = int("".join(c for c in raised.value.hint.partition(",")[0] if c.isdigit()))
    assert len(learned(sentences, size=least)[0]) == least
    with pytest.raises(RecipeError):
        learned(sentences, size=least - 1)


@pytest.mark.parametrize("lines", [[], [""], ["", "  ", "\u200b"]], ids=["nothing", "empty", "blank"])
def test_a_text_without_words_is_a_data_error(learned: Learn, lines: list[str]) -> None:
    with pytest.raises(DataError, match="no text to learn subwords from"):
        learned(lines)


def test_a_missing_text_is_a_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        list(SubwordConfig().learn([tmp_path / "train.source"], tmp_path / "vocabulary.model", 1))


def test_nothing_is_written_when_learning_fails(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("a b c\n")
    with pytest.raises(RecipeError):
        list(SubwordConfig(size=8).learn([text], tmp_path / "vocabulary.model", 1))
    assert list(tmp_path.iterdir()) == [text]


def test_whoever_stops_watching_stops_the_learning(tmp_path: Path, sentences: list[str]) -> None:
    text = tmp_path / "text"
    text.write_text("\n".join(sentences * 100))
    events = SubwordConfig(kind="unigram", size=330).learn([text], tmp_path / "vocabulary.model", 1)
    next(events)
    events.close()  # type: ignore[attr-defined]
    assert list(tmp_path.iterdir()) == [text]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_reserved_characters_and_special_names_do_not_hide_their_line(learned: Learn, kind: str) -> None:
    lines = ["quick\u2585fox", "tab\tbed", "x\u2581y", "p<s>q </s> <unk>", "u\u2028v"] * 40
    vocabulary, _ = learned(lines, kind=kind, size=500, byte_fallback=False)
    for line in lines[:5]:
        assert vocabulary.unk not in vocabulary.encode(line)
        assert vocabulary.decode(vocabulary.encode(line)) == line


def test_without_byte_fallback_unknown_characters_are_counted_and_never_named(
    learned: Learn, sentences: list[str]
) -> None:
    vocabulary, _ = learned(sentences, size=150, byte_fallback=False)
    ids = vocabulary.encode("noon Ж rain")
    assert ids.count(vocabulary.unk) == 1
    assert vocabulary.decode(ids) == "noon \u2047 rain"
    assert not {vocabulary.pad, vocabulary.bos, vocabulary.eos} & set(vocabulary.encode("<s> </s> <pad> <unk>"))


def test_a_space_that_is_rarer_than_the_coverage_still_comes_back(learned: Learn) -> None:
    vocabulary, _ = learned(["a" * 30_000, "ab" * 10], size=300, character_coverage=0.98)
    assert vocabulary.decode(vocabulary.encode(" ba  a ")) == " ba  a "


def test_digits_stay_together_only_where_asked_for(learned: Learn) -> None:
    lines = ["year 2025"] * 100
    together, _ = learned(lines, size=300, split_digits=False)
    apart, _ = learned(lines, size=300, split_digits=True)
    assert "2025" in "".join(together.pieces("2025")) and len(together.pieces("2025")) == 1
    assert [piece.strip("\u2581") for piece in apart.pieces("2025") if piece != "\u2581"] == ["2", "0", "2", "5"]


LINES = st.lists(
    st.text(st.sampled_from("ab <>s/unk0x41\u2581\u2585\té😀\u200d日\U0010ff00\U0010ff0c\ufdd0")), max_size=8
)


@settings(max_examples=60)
@given(LINES, st.sampled_from(["bpe", "unigram"]), st.booleans(), st.sampled_from([1.0, 0.98]))
def test_any_text_is_learned_or_refused_in_plain_words(
    learned: Learn, lines: list[str], kind: str, byte_fallback: bool, coverage: float
) -> None:
    settings: dict[str, Any] = {"kind": kind, "byte_fallback": byte_fallback, "character_coverage": coverage}
    try:
        vocabulary, _ = learned(lines, size=300, **settings)
    except NmtError as error:
        assert not any(line.strip() for line in lines), error.problem
        return
    for line in lines:
        ids = vocabulary.encode(line)
        assert not {vocabulary.pad, vocabulary.bos, vocabulary.eos} & set(ids)
        assert vocabulary.decode(ids) == line or not byte_fallback
