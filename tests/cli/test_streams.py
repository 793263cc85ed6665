"""What holds for every command that reads lines and writes lines: one policy for text, streams, disks and pipes.

A model that has learned nothing serves: what is tested are the ways in and out.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import zstandard
from nmt.cli import main
from search.models import learn_vocabulary, save_folder, sentences

from nmt.corpus.lines import one_line

ODD = b"bal\xe2\x80\xa8kor\ndem\xc2\x85gom\nban\x0bbar\x0c\x1cbel \xe2\x80\xa9 \x1d\x1e\x00 kor\n"
SCRIPTS = [
    "bal kor \U0001f600 dem gom",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \u2764\ufe0f",
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # a Persian word with a joiner that must stay
    "a\u200eb\u200fc\u061cd\u2067e\u2069 \u05e9\u05b8\u05dc\u05d5\u05b9\u05dd",
    "10\u00a0000 bal\u2009kor\u3000dem\u202f!",
    "\u0915\u094d\u200d\u0937 \uac00\ub098 \u5bcc\u58eb\u5c71 \u304b\u3099",
    "  two  spaces  ",
    "\u2581 bal\u2581kor \u2581",
    "<s> </s> <unk> <pad> <0x41> @@ un@@ us &amp; &#124; ##ing |||",
    "471,11 \u20ac XX0555666777 1000222033304444055555066666607",
    "tab\tbell\x07escape\x1b[31m delete\x7f \u009b",
    "line\u2028paragraph\u2029next\x85tab\x0bform\x0cgroup\x1d",
    "\ufffd \ufdd0 \U0010ffff \ue000",
]
BAD = b"bal\n caf\xe9 kor\ndem\n"
PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": lambda data: zstandard.ZstdCompressor().compress(data),
}


@dataclass(frozen=True)
class Command:
    """A command line in which IN stands for the file of lines, OTHER for a parallel file of as many lines."""

    arguments: tuple[str, ...]
    line_for_line: bool = True

    def typed(self, model: Path, given: Path | str, other: Path | str) -> list[str]:
        names = {"MODEL": str(model), "IN": str(given), "OTHER": str(other)}
        return [names.get(argument, argument) for argument in self.arguments]


COMMANDS = {
    "translate": Command(("translate", "MODEL", "--input", "IN", "--device", "cpu")),
    "translate n-best": Command(("translate", "MODEL", "--input", "IN", "--device", "cpu", "--n-best", "2"), False),
    "translate jsonl": Command(("translate", "MODEL", "--input", "IN", "--device", "cpu", "--format", "jsonl")),
    "encode": Command(("encode", "MODEL", "--input", "IN")),
    "encode ids": Command(("encode", "MODEL", "--input", "IN", "--ids")),
    "decode": Command(("decode", "MODEL", "--input", "IN")),
    "rescore": Command(("rescore", "MODEL", "--source", "IN", "--target", "OTHER", "--device", "cpu")),
    "rescore target": Command(("rescore", "MODEL", "--source", "OTHER", "--target", "IN", "--device", "cpu")),
    "score": Command(("score", "OTHER", "--input", "IN", "--sentence")),
    "score reference": Command(("score", "IN", "--input", "OTHER", "--sentence")),
}
each = pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
each_line = pytest.mark.parametrize(
    "command",
    [c for c in COMMANDS.values() if c.line_for_line],
    ids=[n for n, c in COMMANDS.items() if c.line_for_line],
)


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: bytes
    err: str


class Desk:
    """Runs commands on given bytes, from a file or from stdin."""

    def __init__(self, model: Path, folder: Path, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[bytes]):
        self.model, self.folder, self.patch, self.captured = model, folder, patch, captured

    def run(self, command: Command, data: bytes, *more: str, stdin: bool = False, suffix: str = "") -> Ended:
        given = self.folder / f"in{suffix}"
        given.write_bytes(PACK.get(suffix, bytes)(data))
        other = self.folder / "other"
        count = data.count(b"\n") + (not data.endswith(b"\n") and data != b"")
        other.write_text("".join(f"{line}\n" for line in sentences(count, seed=3)))
        self.patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        self.captured.readouterr()
        status = main([*command.typed(self.model, "-" if stdin else given, other), *more])
        captured = self.captured.readouterr()
        return Ended(status, captured.out, captured.err.decode())


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    return save_folder(folder / "model", learn_vocabulary(folder))


@pytest.fixture
def desk(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Desk:
    return Desk(model, tmp_path, monkeypatch, capsysbinary)


@each_line
def test_odd_separators_and_nul_neither_split_nor_cut_a_line(desk: Desk, command: Command) -> None:
    for stdin in (True, False):
        ended = desk.run(command, ODD, stdin=stdin)
        assert ended.status == 0
        assert ended.out.count(b"\n") == len(ended.out.decode().splitlines()) == 3
    last = desk.run(command, ODD.replace(b"\x00", b" "))
    assert last.out == ended.out, "NUL is a space"


@each_line
@pytest.mark.parametrize(
    "data", [b"bal kor\ndem\n", b"\xef\xbb\xbfbal kor\r\ndem\r\n", b"bal kor\ndem", b"bal kor\r\ndem"]
)
def test_ends_of_lines_are_of_any_kind_and_the_last_may_be_missing(desk: Desk, command: Command, data: bytes) -> None:
    ended, plain = desk.run(command, data), desk.run(command, b"bal kor\ndem\n", stdin=True)
    assert (ended.status, ended.out) == (plain.status, plain.out)
    marks = [
        line for line in ended.err.splitlines() if "begins with a byte order mark" in line
    ]  # nmt score tells of it
    assert [line for line in ended.err.splitlines() if line not in marks] == plain.err.splitlines()


def test_what_is_encoded_and_decoded_comes_back_whatever_its_script(desk: Desk) -> None:
    text = "".join(f"{line}\n" for line in SCRIPTS)
    pieces = desk.run(COMMANDS["encode"], text.encode())
    back = desk.run(COMMANDS["decode"], pieces.out, "--side", "source")
    assert (back.status, back.err) == (0, "")
    assert back.out.decode() == "".join(f"{one_line(unicodedata.normalize('NFC', line))}\n" for line in SCRIPTS)


@each
def test_invalid_bytes_are_named_and_nothing_is_written(desk: Desk, command: Command) -> None:
    for stdin in (False, True):
        ended = desk.run(command, BAD, stdin=stdin)
        place = "stdin" if stdin else str(desk.folder / "in")
        first, second = ended.err.splitlines()
        assert ended.status == 1
        assert first == f"error: {place}:2: byte 5 (0xE9) is not valid UTF-8"
        assert second.startswith("hint: ")
        if not stdin:
            assert ended.out == b""


@each
def test_invalid_bytes_are_replaced_where_asked_for_and_counted(desk: Desk, command: Command) -> None:
    ended = desk.run(command, BAD, "--on-bad-bytes", "replace")
    clean = desk.run(command, BAD.replace(b"\xe9", b"\xef\xbf\xbd"))
    assert (ended.status, ended.out) == (0, clean.out)
    assert "warning: " in ended.err and "UTF-8" in ended.err and " 1 " in f" {ended.err} "


@each
@pytest.mark.parametrize("suffix", PACK)
def test_packed_files_are_read_by_their_suffix(desk: Desk, command: Command, suffix: str) -> None:
    data = b"bal kor\ndem\n"
    assert desk.run(command, data, suffix=suffix).out == desk.run(command, data).out != b""


@each
def test_quiet_leaves_stderr_empty_and_results_the_same(desk: Desk, command: Command) -> None:
    data = "".join(f"{line}\n" for line in ["dem " * 200, "b\u00e4l .", "", *sentences(4)]).encode()
    loud = desk.run(command, data)
    assert not {"\r", "\x1b"} & set(loud.err)
    assert desk.run(command, data, "--quiet") == Ended(0, loud.out, "")


@each_line
def test_no_lines_give_no_lines(desk: Desk, command: Command) -> None:
    ended = desk.run(command, b"")
    assert ended.out == b""
    assert ended.status == ("score" in command.arguments), "there is nothing to score"


def streams() -> Iterator[tuple[str, Command]]:
    """Commands that write something on stdout, those without lines among them."""
    yield from COMMANDS.items()
    yield "checkpoint show", Command(("checkpoint", "show", "MODEL"))
    yield "help", Command(("--help",))
    yield "a command's help", Command(("translate", "--help"))
    yield "version", Command(("--version",))


@pytest.fixture
def into(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Callable[[Command, int], Ended]:
    """Runs a command whose stdout is this file descriptor."""

    def run(command: Command, descriptor: int) -> Ended:
        with monkeypatch.context() as patch, os.fdopen(descriptor, "wb") as stdout:
            patch.setattr(sys, "stdout", io.TextIOWrapper(stdout))
            ended = desk.run(command, "".join(f"{line}\n" for line in sentences(40)).encode(), stdin=True)
            sys.stdout.flush()  # as Python does at its end, and complains if it cannot
        return ended

    return run


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full disk")
@pytest.mark.parametrize("command", [c for _, c in streams()], ids=[n for n, _ in streams()])
def test_a_full_disk_behind_stdout_is_an_error(into: Callable[[Command, int], Ended], command: Command) -> None:
    ended = into(command, os.open("/dev/full", os.O_WRONLY))
    assert ended.status == 1
    first, second = ended.err.splitlines()[-2:]
    assert first == "error: stdout: cannot be written: No space left on device"
    assert second.startswith("hint: ")


@pytest.mark.parametrize("command", [c for _, c in streams()], ids=[n for n, _ in streams()])
def test_a_closed_pipe_ends_quietly(into: Callable[[Command, int], Ended], command: Command) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = into(command, writer)
    assert ended.status in {0, 141}
    assert "error" not in ended.err and "Traceback" not in ended.err


def test_head_gets_its_lines_and_hears_no_complaint(shell, desk: Desk) -> None:
    (desk.folder / "in").write_text("".join(f"{line}\n" for line in sentences(3000)))
    ended = shell(f"cd {desk.folder}; nmt encode {desk.model} < in | head -n 5; exit ${{PIPESTATUS[0]}}")
    assert ended.returncode in {0, 141}
    assert (ended.stdout.count(b"\n"), ended.stderr) == (5, b"")


@each
def test_a_closed_stdout_is_an_error_and_a_closed_stderr_none(
    desk: Desk, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = desk.run(command, b"bal\n")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        ended = desk.run(command, b"bal\n")
    assert ended.status == 1 and ended.err.splitlines()[-2] == "error: stdout: is closed"
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", None)
        assert desk.run(command, b"bal\n") == Ended(0, expected.out, "")


@pytest.mark.parametrize("name", ["translate", "encode", "decode", "rescore"])
def test_a_full_disk_behind_output_is_an_error_that_leaves_nothing(desk: Desk, name: str) -> None:
    ended = desk.run(COMMANDS[name], b"bal\n", "--output", "/dev/full")
    assert ended.status == 1 and ended.out == b""
    assert ended.err.startswith("error: /dev/full: cannot be written: No space left on device\nhint: ")
    ended = desk.run(COMMANDS[name], b"bal\n", "--output", str(desk.folder / "nowhere" / "out"))
    assert ended.status == 1 and "nowhere" in ended.err
    assert not (desk.folder / "nowhere").exists()


@pytest.mark.parametrize("name", ["translate", "encode", "decode", "rescore"])
@pytest.mark.parametrize("suffix", ["", *PACK])
def test_output_goes_to_a_file_by_its_suffix(desk: Desk, name: str, suffix: str) -> None:
    expected = desk.run(COMMANDS[name], b"bal kor\n\ndem\n").out
    out = desk.folder / f"out{suffix}"
    assert desk.run(COMMANDS[name], b"bal kor\n\ndem\n", "--output", str(out)).out == b""
    unpack = {".gz": gzip.decompress, ".xz": lzma.decompress, ".bz2": bz2.decompress, "": bytes}
    found = zstandard.ZstdDecompressor().decompressobj().decompress(out.read_bytes()) if suffix == ".zst" else None
    assert (found if found is not None else unpack[suffix](out.read_bytes())) == expected


@pytest.mark.parametrize("name", ["translate", "encode", "decode", "rescore"])
def test_a_vocabulary_of_another_model_is_refused(
    desk: Desk, name: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shutil.copytree(desk.model, tmp_path / "model")
    learn_vocabulary(tmp_path / "model", size=330)
    desk.model = tmp_path / "model"
    ended = desk.run(COMMANDS[name], b"bal\n")
    assert (ended.status, ended.out) == (1, b"")
    first, second = ended.err.splitlines()
    assert "vocabulary.model" in first and second.startswith("hint: ")


@pytest.mark.parametrize("name", ["translate", "encode", "decode", "rescore"])
@pytest.mark.parametrize("content", [b"\x80\x02}q\x00.", b"PK\x03\x04", b"", b"{"])
def test_a_file_that_is_no_model_folder_is_refused_unopened(desk: Desk, name: str, content: bytes) -> None:
    desk.model = desk.folder / "model.pt"
    desk.model.write_bytes(content)
    ended = desk.run(COMMANDS[name], b"bal\n")
    assert (ended.status, ended.out) == (1, b"")
    assert len(ended.err.splitlines()) == 2 and "model.pt: is a " in ended.err


@pytest.mark.slow
def test_threads_change_no_translation(desk: Desk) -> None:
    import torch

    data = "".join(f"{line}\n" for line in sentences(60, 20)).encode()
    try:
        one, two = (desk.run(COMMANDS["translate jsonl"], data, "--threads", n, "--scores") for n in "12")
    finally:
        torch.set_num_threads(1)
    for a, b in zip(map(json.loads, one.out.splitlines()), map(json.loads, two.out.splitlines()), strict=True):
        for number in ("score", "log_probability"):
            assert a.pop(number) == pytest.approx(b.pop(number), abs=1e-4)
        assert a.pop("token_log_probabilities") == pytest.approx(b.pop("token_log_probabilities"), abs=1e-4)
        assert a == b
