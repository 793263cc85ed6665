"""decode(encode(x)) = x, whatever x holds; and text is never a control symbol."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.errors import ModelError
from nmt.subwords.vocabulary import Vocabulary

TOUCHY = [
    "",
    " ",
    "   ",
    " a",
    "a  b   ",
    "the train  leaves ",
    "\u2581",
    " \u2581 ",
    "noon\u2581rain",
    "\u2581\u2581the",
    "\u2585 roofs",
    "<s>",
    "</s>",
    "<unk>",
    "<pad>",
    "a<s>b <unk></s>",
    "<0x41>",
    "<0xE2><0x96><0x81>",
    "<0x",
    "@@ a@@ \u2022",
    "\u2047",
    " \u2047 ",
    "\t\ttab",
    "\x00\x01\x1b\x7f",
    "\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029",
    "10\u00a0000 bal\u2009kor\u3000dem",
    "می‌خواهم \u200e\u200f\u061c",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \U0001f44d\U0001f3fd",
    "a\u0301\u0323 e\u0300\u0300",
    "\ufeffbom\u200b",
    "\ue000\uf8ff\U000f0000\U0010fffd",
    "\U0010ff00\U0010ff01\U0010ff0c\U0010ff0d",
    "\ufdd0\ufffe\uffff\U0001ffff\U0010ffff",
    "\ufffd",
    "日本語のテキスト 한국어 텍스트",
    "train" * 3000,
]
CHARACTERS = st.characters(exclude_categories=["Cs"])
FRAGMENTS = st.sampled_from([t for t in TOUCHY if len(t) < 100] + ["the", " rain", "12"])
TEXTS = st.text(CHARACTERS) | st.lists(FRAGMENTS | CHARACTERS).map("".join)


@pytest.mark.parametrize("text", TOUCHY, ids=lambda text: ascii(text[:20]))
def test_touchy_text_comes_back(vocabulary: Vocabulary, text: str) -> None:
    assert vocabulary.decode(vocabulary.encode(text)) == text
    assert vocabulary.decode_pieces(vocabulary.pieces(text)) == text


@settings(max_examples=300)
@given(TEXTS)
def test_any_text_comes_back_and_is_never_a_control_symbol(vocabulary: Vocabulary, text: str) -> None:
    ids = vocabulary.encode(text)
    assert vocabulary.decode(ids) == text
    assert not {vocabulary.pad, vocabulary.unk, vocabulary.bos, vocabulary.eos} & set(ids)
    assert all(0 <= i < len(vocabulary) for i in ids)


@settings(max_examples=100)
@given(TEXTS)
def test_pieces_agree_with_ids_and_fit_on_one_line(vocabulary: Vocabulary, text: str) -> None:
    pieces = vocabulary.pieces(text)
    assert pieces == [vocabulary.piece(i) for i in vocabulary.encode(text)]
    line = " ".join(pieces)
    assert line.splitlines() == ([line] if line else [])
    assert vocabulary.decode_pieces(line.split(" ") if line else []) == text


def test_every_character_of_unicode_comes_back(vocabulary: Vocabulary) -> None:
    characters = [chr(i) for i in range(0x110000) if unicodedata.category(chr(i)) != "Cs"]
    texts = ["".join(characters[i : i + 997]) for i in range(0, len(characters), 997)]
    assert [vocabulary.decode(ids) for ids in vocabulary.encode_many(texts)] == texts


@settings(max_examples=200)
@given(st.data())
def test_any_ids_decode_without_control_symbols(vocabulary: Vocabulary, data: st.DataObject) -> None:
    ids = data.draw(st.lists(st.integers(0, len(vocabulary) - 1), max_size=30))
    special = {vocabulary.pad, vocabulary.bos, vocabulary.eos}
    vocabulary.decode(ids).encode()  # no exception, and valid Unicode
    first_byte = 4
    harmless = [i for i in ids if i not in special and not first_byte <= i < first_byte + 256]
    with_marks = [vocabulary.bos, *(j for i in harmless for j in (i, vocabulary.pad)), vocabulary.eos]
    assert vocabulary.decode(with_marks) == vocabulary.decode(harmless)


def test_special_ids_stand_first_and_show_nothing_or_a_question(vocabulary: Vocabulary) -> None:
    assert (vocabulary.pad, vocabulary.unk, vocabulary.bos, vocabulary.eos) == (0, 1, 2, 3)
    assert [vocabulary.piece(i) for i in range(4)] == ["<pad>", "<unk>", "<s>", "</s>"]
    assert vocabulary.decode([0, 2, 3]) == ""
    assert vocabulary.decode([1]) == "\u2047"
    assert vocabulary.decode_pieces(["<s>", "<unk>", "</s>"]) == "\u2047"


def test_bytes_that_are_not_utf8_decode_to_the_replacement_character(vocabulary: Vocabulary) -> None:
    half = vocabulary.encode("\U0001f600")[:-1]
    assert set(vocabulary.decode(half)) == {"\ufffd"}


def test_half_a_surrogate_pair_encodes_as_the_replacement_character(vocabulary: Vocabulary) -> None:
    assert vocabulary.decode(vocabulary.encode("noon \udc80")) == "noon \ufffd"


def test_many_texts_encode_as_each_alone_on_any_number_of_threads(vocabulary: Vocabulary) -> None:
    texts = TOUCHY * 5
    alone = [vocabulary.encode(text) for text in texts]
    assert vocabulary.encode_many(texts) == alone
    assert vocabulary.encode_many(iter(texts), threads=1) == alone
    assert vocabulary.encode_many([]) == []


def test_every_digit_is_a_piece_of_its_own(vocabulary: Vocabulary) -> None:
    for text in ("471,11", "XX0555666777", "1000222033304444055555066666607", "train 2025"):
        digits = [piece for piece in vocabulary.pieces(text) if any(c.isdigit() for c in piece) and len(piece) < 6]
        assert all(len(piece.strip("\u2581")) == 1 for piece in digits)
        assert "".join(digits).replace("\u2581", "") == "".join(c for c in text if c.isdigit())


def test_encoding_decoded_text_gives_the_same_pieces(vocabulary: Vocabulary) -> None:
    for text in TOUCHY:
        again = vocabulary.decode(vocabulary.encode(text))
        assert vocabulary.pieces(again) == vocabulary.pieces(text)


@pytest.mark.parametrize("content", [b"", b"no model at all", b"\x00" * 4096, "cut"])
def test_a_damaged_file_is_one_clear_error(
    vocabulary: Vocabulary, tmp_path: Path, content: bytes | str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "vocabulary.model"
    path.write_bytes(vocabulary.path.read_bytes()[:-100] if isinstance(content, str) else content)
    with pytest.raises(ModelError) as raised:
        Vocabulary.load(path)
    assert str(path) in raised.value.problem and "\n" not in raised.value.problem and raised.value.hint
    assert capfd.readouterr() == ("", "")


def test_a_missing_file_and_a_folder_are_clear_errors(tmp_path: Path) -> None:
    for path in (tmp_path / "vocabulary.model", tmp_path):
        with pytest.raises(ModelError, match="cannot be read"):
            Vocabulary.load(path)


def test_the_digest_is_that_of_the_file(vocabulary: Vocabulary) -> None:
    from nmt.files import sha256

    assert vocabulary.sha256 == sha256(vocabulary.path)
