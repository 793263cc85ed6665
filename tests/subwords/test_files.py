"""Files and streams of pieces: line for line, whole, and back to the text they came from."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.corpus.clean import Cleaner
from nmt.corpus.lines import is_blank, one_line
from nmt.errors import DataError
from nmt.events import Caution, Event
from nmt.subwords.files import decode_file, encode_file
from nmt.subwords.vocabulary import Vocabulary

RAW = Cleaner("en", "none")
Learn = Callable[..., tuple[Vocabulary, list[Event]]]


def round_trip(vocabulary: Vocabulary, folder: Path, data: bytes, ids: bool = False) -> tuple[bytes, bytes]:
    (folder / "text").write_bytes(data)
    list(encode_file(vocabulary, RAW, folder / "text", folder / "pieces", ids=ids))
    list(decode_file(vocabulary, RAW, folder / "pieces", folder / "back", ids=ids))
    return (folder / "pieces").read_bytes(), (folder / "back").read_bytes()


@settings(max_examples=60)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\0"))), st.booleans())
def test_lines_come_back_one_for_one(
    vocabulary: Vocabulary, tmp_path_factory: pytest.TempPathFactory, lines: list[str], ids: bool
) -> None:
    lines = [line.lstrip("\ufeff") for line in lines]
    data = "".join(line + "\n" for line in lines).encode()
    pieces, back = round_trip(vocabulary, tmp_path_factory.mktemp("files"), data, ids)
    expected = ["" if is_blank(line) else one_line(line) for line in lines]
    assert back.decode() == "".join(line + "\n" for line in expected)
    assert len(pieces.decode().splitlines()) == len(lines)


def test_odd_separators_neither_split_nor_cut_a_line(vocabulary: Vocabulary, tmp_path: Path) -> None:
    data = "rain\u2028on \x85 old\r\nnoon\0at\n\n \u3000\nlast\v".encode()
    pieces, back = round_trip(vocabulary, tmp_path, data)
    assert pieces.count(b"\n") == 5
    assert back.decode() == "rain on   old\nnoon at\n\n\nlast \n"


def test_numbers_are_those_of_the_pieces(vocabulary: Vocabulary, tmp_path: Path) -> None:
    data = b"the train leaves\nXX05\n"
    pieces, numbers = (round_trip(vocabulary, tmp_path, data, ids)[0].decode().splitlines() for ids in (False, True))
    for names, row in zip(pieces, numbers, strict=True):
        assert [vocabulary.piece(int(number)) for number in row.split()] == names.split(" ")


def test_packed_files_are_read_and_written_by_suffix(vocabulary: Vocabulary, tmp_path: Path) -> None:
    (tmp_path / "text.gz").write_bytes(gzip.compress(b"noon\n"))
    list(encode_file(vocabulary, RAW, tmp_path / "text.gz", tmp_path / "pieces.bz2"))
    list(decode_file(vocabulary, RAW, tmp_path / "pieces.bz2", tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == b"noon\n"
    assert "noon" in vocabulary.decode_pieces(bz2.decompress((tmp_path / "pieces.bz2").read_bytes()).decode().split())


def test_a_bad_byte_in_a_file_leaves_no_output(
    vocabulary: Vocabulary, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_bytes(b"noon\n" * 3000 + b"caf\xe9\n")
    for output in (tmp_path / "pieces", "-"):
        with pytest.raises(DataError, match=r"text:3001: byte 4 \(0xE9\)"):
            list(encode_file(vocabulary, RAW, tmp_path / "text", output))
    assert not (tmp_path / "pieces").exists() and capfd.readouterr().out == ""


def test_replaced_bytes_are_counted_once(vocabulary: Vocabulary, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"caf\xe9 \xff\n")
    events = list(encode_file(vocabulary, RAW, tmp_path / "text", tmp_path / "pieces", on_bad_bytes="replace"))
    assert [event.text.split()[0] for event in events if isinstance(event, Caution)] == ["2"]


@pytest.mark.parametrize("line", ["5 x 7", "99999", "-1", "1.5", "²", "9" * 5000])
def test_what_is_no_number_of_the_vocabulary_is_named_with_its_place(
    vocabulary: Vocabulary, tmp_path: Path, line: str
) -> None:
    (tmp_path / "ids").write_text(f"5 6\n{line}\n")
    with pytest.raises(DataError, match=rf"ids:2: .* is not a number from 0 to {len(vocabulary) - 1}"):
        list(decode_file(vocabulary, RAW, tmp_path / "ids", tmp_path / "text", ids=True))
    assert not (tmp_path / "text").exists()


def test_unknown_pieces_are_counted_and_their_own_text_survives(learned: Learn, tmp_path: Path) -> None:
    vocabulary, _ = learned(["rain on old bridges"] * 10, size=60, byte_fallback=False)
    (tmp_path / "text").write_text("rain Ж\n")
    events = list(encode_file(vocabulary, RAW, tmp_path / "text", tmp_path / "pieces"))
    assert any("1 of" in event.text and "unknown" in event.text for event in events if isinstance(event, Caution))
    list(decode_file(vocabulary, RAW, tmp_path / "pieces", tmp_path / "back"))
    assert "<unk>" not in (tmp_path / "pieces").read_text()
    assert (tmp_path / "back").read_text() == "rain Ж\n"


def test_the_cleaner_is_applied_when_encoding(vocabulary: Vocabulary, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("e\u0301\n")
    list(encode_file(vocabulary, Cleaner("en", "nfc"), tmp_path / "text", tmp_path / "pieces"))
    list(decode_file(vocabulary, RAW, tmp_path / "pieces", tmp_path / "back"))
    assert (tmp_path / "back").read_text() == "\u00e9\n"
