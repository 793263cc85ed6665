"""Lines: what ends one, what is text, and that what is written is what is read."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.corpus.lines import count_lines, is_blank, one_line, open_lines, read_lines
from nmt.errors import DataError

SUFFIXES = ["", ".gz", ".xz", ".bz2", ".zst"]
ODD = "\x00\x0b\x0c\r\x1c\x1d\x1e\x85\u2028\u2029\ufeff\u200b\u200c\u200d\u200e\u200f\u061c\u00a0\u3000 \tab"
ODD += "\u00e9\U0001f600\u2581"
odd_lines = st.text(st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=["Cs"], exclude_characters="\n")))
file_text = st.lists(st.one_of(odd_lines, st.sampled_from(["\n", "\r\n", "\n\n", "\ufeff"]))).map("".join)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def expected(text: str) -> list[str]:
    """The rules once more, said in another way."""
    text = text.removeprefix("\ufeff")
    if not text:
        return []
    lines = text.removesuffix("\n").split("\n")
    return [line.removesuffix("\r").replace("\0", " ") for line in lines]


@settings(max_examples=200)
@given(text=file_text)
def test_only_a_line_feed_ends_a_line(folder: Path, text: str) -> None:
    path = folder / "text"
    path.write_bytes(text.encode())
    assert list(read_lines(path)) == expected(text)
    assert count_lines(path) == len(expected(text))


def test_other_separators_stay_inside_their_lines(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"bal\xe2\x80\xa8kor\ndem\xc2\x85gom\nban\x0bbar\x0c\x1cbel\n")
    assert list(read_lines(tmp_path / "in")) == ["bal\u2028kor", "dem\x85gom", "ban\x0bbar\x0c\x1cbel"]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"bal kor", ["bal kor"]),
        (b"bal\r\nkor\r\n", ["bal", "kor"]),
        (b"bal\r\r\n", ["bal\r"]),
        (b"bal\rkor\n", ["bal\rkor"]),
        (b"bal\r", ["bal"]),
        (b"bal\x00kor dem\ngom\n", ["bal kor dem", "gom"]),
        (b"\xef\xbb\xbfbal\n\xef\xbb\xbfkor\n", ["bal", "\ufeffkor"]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\xbf\n", [""]),
    ],
)
def test_line_ends_nul_and_byte_order_marks(tmp_path: Path, data: bytes, lines: list[str]) -> None:
    (tmp_path / "in").write_bytes(data)
    assert list(read_lines(tmp_path / "in")) == lines
    assert count_lines(tmp_path / "in") == len(lines)


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=30)
@given(lines=st.lists(odd_lines))
def test_what_is_written_is_read_in_every_packing(folder: Path, suffix: str, lines: list[str]) -> None:
    path = folder / f"lines{suffix}"
    with open_lines(path) as out:
        for line in lines:
            out.write(line)
    assert list(read_lines(path)) == expected("".join(line + "\n" for line in lines))
    assert count_lines(path) == len(lines)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_empty_file_of_any_suffix_has_no_lines(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"in{suffix}").write_bytes(b"")
    assert list(read_lines(tmp_path / f"in{suffix}")) == []


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
def test_packed_files_are_the_same_bytes_each_time(tmp_path: Path, suffix: str) -> None:
    for name in ("a", "b"):
        with open_lines(tmp_path / f"{name}{suffix}") as out:
            out.write("bal kor")
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
def test_packed_files_that_are_joined_are_read_to_the_end(tmp_path: Path, suffix: str) -> None:
    with open_lines(tmp_path / f"a{suffix}") as out:
        out.write("bal")
    (tmp_path / f"b{suffix}").write_bytes((tmp_path / f"a{suffix}").read_bytes() * 3)
    assert list(read_lines(tmp_path / f"b{suffix}")) == ["bal"] * 3


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
def test_a_packed_file_that_is_cut_is_an_error_wherever_it_is_cut(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"in{suffix}"
    with open_lines(path) as out:
        for number in range(300):
            out.write(f"line {number * 7919}")
    whole = path.read_bytes()
    for cut in [1, 3, 7, len(whole) // 3, len(whole) // 2, len(whole) - 1]:
        path.write_bytes(whole[:cut])
        with pytest.raises(DataError, match="cannot be read"):
            list(read_lines(path))
        with pytest.raises(DataError, match="cannot be read"):
            count_lines(path)


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
def test_a_plain_file_with_a_packed_name_is_an_error(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"in{suffix}").write_bytes(b"this is plain text\n")
    with pytest.raises(DataError, match="cannot be read"):
        list(read_lines(tmp_path / f"in{suffix}"))


def test_invalid_utf8_names_file_line_and_byte(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"bal\n caf\xe9 kor\ndem\n")
    lines = read_lines(tmp_path / "in")
    assert next(lines) == "bal"
    with pytest.raises(DataError) as caught:
        next(lines)
    assert caught.value.problem == f"{tmp_path / 'in'}:2: byte 5 (0xE9) is not valid UTF-8"


def test_invalid_utf8_is_replaced_and_counted_where_asked_for(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"bal\n caf\xe9 kor \xef\xbf\xbd\n\xff\xfe\xed\xa0\x80\n")
    tally: Counter[str] = Counter()
    assert list(read_lines(tmp_path / "in", "replace", tally)) == ["bal", " caf\ufffd kor \ufffd", "\ufffd" * 5]
    assert tally["bad bytes"] == 6


def test_utf16_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes("bal\n".encode("utf-16"))
    with pytest.raises(DataError) as caught:
        list(read_lines(tmp_path / "in"))
    assert "iconv -f utf-16" in caught.value.hint


def test_a_missing_file_and_a_folder_are_data_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="missing: does not exist"):
        list(read_lines(tmp_path / "missing"))
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        list(read_lines(tmp_path))


def test_a_line_is_given_as_soon_as_its_end_has_come() -> None:
    reader, writer = os.pipe()
    try:
        os.write(writer, b"bal\nko")
        lines = read_lines(f"/dev/fd/{reader}")
        assert next(lines) == "bal"
        os.write(writer, b"r\n")
        assert next(lines) == "kor"
        os.close(writer)
        assert list(lines) == []
    finally:
        os.close(reader)


def test_pipes_are_utf8_with_plain_line_ends_in_any_locale() -> None:
    program = (
        "from nmt.corpus.lines import open_lines, read_lines\n"
        "with open_lines('-') as out:\n"
        "    for line in read_lines('-'): out.write(line)\n"
    )
    environment = os.environ | {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    data = "é\u2028日本\r\n😀".encode()
    done = subprocess.run([sys.executable, "-c", program], input=data, capture_output=True, env=environment, check=True)
    assert done.stdout == "é\u2028日本\n😀\n".encode()
    assert done.stderr == b""


def test_invalid_utf8_on_stdin_is_named_as_such(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"\xff\n")
    with (tmp_path / "in").open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        with pytest.raises(DataError, match="stdin:1: byte 1"):
            list(read_lines("-"))


def test_a_line_feed_or_half_a_character_cannot_break_what_is_written(tmp_path: Path) -> None:
    with open_lines(tmp_path / "out") as out:
        out.write("bal\nkor")
        out.write("\ud83d dem")
    assert (tmp_path / "out").read_bytes() == "bal kor\n\ufffd dem\n".encode()


def test_a_file_of_lines_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(ValueError), open_lines(tmp_path / "out.gz") as out:
        out.write("bal")
        raise ValueError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_stdout_is_an_output_error() -> None:
    program = (
        "import os\n"
        "from nmt.corpus.lines import open_lines\n"
        "from nmt.errors import OutputError\n"
        "try:\n"
        "    with open_lines('-') as out: out.write('bal')\n"
        "except OutputError as error:\n"
        "    os.write(2, error.problem.encode()); os._exit(1)\n"
    )
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, "-c", program], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr == b"stdout: cannot be written: No space left on device"


def test_lines_go_to_a_stdout_that_takes_only_text(monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    monkeypatch.setattr("sys.stdout", text)
    with open_lines("-") as out:
        out.write("é")
    assert text.getvalue() == "é\n"


@given(st.text(st.one_of(st.sampled_from(ODD + "\n"), st.characters())))
def test_one_line_is_one_line_for_everybody(text: str) -> None:
    line = one_line(text)
    assert len(line) == len(text)
    assert len(line.splitlines()) <= 1
    assert not set(line) & set("\0\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
    assert all(a == b or b == " " for a, b in zip(text, line, strict=True))


@pytest.mark.parametrize(
    "line", ["", " ", "\t", "\u00a0", "\u3000", "\u200b", "\ufeff", " \u200b\t\ufeff\u2009\u2028\r"]
)
def test_white_space_of_every_kind_is_blank(line: str) -> None:
    assert is_blank(line)


def test_whatever_can_be_seen_or_joins_is_not_blank() -> None:
    for character in map(chr, range(0x10000)):
        if unicodedata.category(character)[0] in "LNPSM" or character in "\u200c\u200d":
            assert not is_blank(f" {character} ")


def test_unicode_white_space_is_blank() -> None:
    for character in map(chr, range(0x110000)):
        if unicodedata.category(character) in {"Zs", "Zl", "Zp"}:
            assert is_blank(character)
