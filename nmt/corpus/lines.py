"""Lines of text, read and written alike by every command.

Only byte 0x0A ends a line. A CR just before it belongs to the line end, and the last line may lack its end. NUL becomes
a space, a byte order mark at the start of a file is dropped, and nothing else is changed. Text is UTF-8 in any locale;
`.gz`, `.xz`, `.zst` and `.bz2` are packed and unpacked by suffix; `-` is stdin or stdout.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import stat
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from nmt.corpus.packed import BROKEN, packing, unpacking
from nmt.errors import DataError, NmtError, OutputError
from nmt.files import write_whole

_BLANKS = "".join(c for c in map(chr, range(0x3001)) if c.isspace()) + "\0\u200b\ufeff"
_LINE_ENDS = str.maketrans(dict.fromkeys("\0\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", " "))
_SURROGATES = re.compile("[\ud800-\udfff]")


def read_lines(path: Path | str, on_bad_bytes: str = "error", tally: Counter[str] | None = None) -> Iterator[str]:
    """The lines of `path` without their ends, each as soon as its end has arrived.

    `on_bad_bytes`: "error" raises DataError with file, line and byte at invalid UTF-8; "replace" puts U+FFFD in its
    place and counts it in ``tally["bad bytes"]``. A byte order mark that is left out at the start is counted in
    ``tally["byte order marks"]``. Raises DataError also when the file is missing, unreadable or cut.
    """
    name = "stdin" if str(path) == "-" else str(path)
    with _open_input(path, name) as stream:
        number = 0
        while raw := _guarded(stream.readline, name):
            number += 1
            if number == 1 and raw.startswith(codecs.BOM_UTF8):
                raw = raw[len(codecs.BOM_UTF8) :]
                if tally is not None:
                    tally["byte order marks"] += 1
                if not raw:
                    return
            line = _decode(_without_end(raw), name, number, on_bad_bytes, tally)
            yield line.replace("\0", " ") if "\0" in line else line


def count_lines(path: Path | str) -> int:
    """How many lines `read_lines` gives, without decoding them. Raises DataError as it does."""
    name = str(path)
    lines, size, start, last = 0, 0, b"", b"\n"
    with _open_input(path, name) as stream:
        while chunk := _guarded(partial(stream.read, 1 << 20), name):
            start = start or chunk[:3]
            lines += chunk.count(b"\n")
            size += len(chunk)
            last = chunk[-1:]
    return 0 if size == 3 and start == codecs.BOM_UTF8 else lines + (last != b"\n")


class LineWriter:
    """Writes lines as UTF-8 with 0x0A at their ends. A line feed inside a line becomes a space, so one stays one."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream = stream
        self._name = name

    def write(self, line: str) -> None:
        """One line. Raises OutputError when it cannot be written, BrokenPipeError when nobody reads any more."""
        if "\n" in line:
            line = line.replace("\n", " ")
        try:
            data = line.encode()
        except UnicodeEncodeError:  # half a surrogate pair is no character
            data = _SURROGATES.sub("\ufffd", line).encode()
        try:
            self._stream.write(data + b"\n")
        except OSError as error:
            raise _refused(self._name, error) from error

    def flush(self) -> None:
        """Hand on what has been written so far. Raises as `write` does."""
        try:
            self._stream.flush()
        except OSError as error:
            raise _refused(self._name, error) from error


@contextmanager
def open_lines(path: Path | str) -> Iterator[LineWriter]:
    """A LineWriter to `path`, which appears whole when the block ends, packed by its suffix; "-" is stdout.

    Raises OutputError when it cannot be written.
    """
    if str(path) == "-":
        if sys.stdout is None:
            raise OutputError("stdout: is closed", "open it, or name a file with --output")
        stdout = getattr(sys.stdout, "buffer", None) or _TextAsBytes()
        writer = LineWriter(cast(BinaryIO, stdout), "stdout")
        yield writer
        writer.flush()
        return
    path = Path(path)
    with write_whole(path) as stream, packing(path.suffix, stream) as packed:
        yield LineWriter(packed, str(path))


def read_once(path: Path | str) -> bool:
    """Whether `path` can be read only once, forwards, and may pause: stdin, a pipe, a terminal."""
    if str(path) == "-":
        return True
    try:
        return not stat.S_ISREG(Path(path).stat().st_mode)
    except OSError:
        return False  # reading it will say what is wrong


def keep_apart(source: Path | str, output: Path | str) -> None:
    """Raises OutputError when `output` is the file that is being read, whose text would be lost."""
    files = [Path(path) for path in (source, output) if str(path) != "-"]
    if len(files) == 2 and all(path.is_file() for path in files) and files[0].samefile(files[1]):
        raise OutputError(f"{output}: is the input, which would be overwritten", "name another file with --output")


def is_blank(line: str) -> bool:
    """Whether nothing remains once Unicode white space, zero-width space and U+FEFF are removed."""
    return not line.strip(_BLANKS)


def one_line(text: str) -> str:
    """`text` with a space for NUL and for every character that some program takes as a line end.

    LF, CR, VT, FF, FS, GS, RS, U+0085, U+2028 and U+2029. For everything that is printed as a line.
    """
    return text.translate(_LINE_ENDS)


def _decode(raw: bytes, name: str, number: int, on_bad_bytes: str, tally: Counter[str] | None) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        if on_bad_bytes != "replace":
            place = f"{name}:{number}: byte {error.start + 1} (0x{raw[error.start]:02X})"
            raise DataError(f"{place} is not valid UTF-8", _encoding_hint(raw, number)) from error
        line = raw.decode(errors="replace")
        if tally is not None:
            tally["bad bytes"] += line.count("\ufffd") - raw.count("\ufffd".encode())
        return line


def _encoding_hint(raw: bytes, number: int) -> str:
    if number == 1 and raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "the file is UTF-16: convert it with iconv -f utf-16 -t utf-8"
    return (
        "convert the file to UTF-8, or let --on-bad-bytes replace (in a recipe: [preprocess] on_bad_bytes) put U+FFFD "
        "in its place"
    )


def _without_end(raw: bytes) -> bytes:
    raw = raw[:-1] if raw.endswith(b"\n") else raw
    return raw[:-1] if raw.endswith(b"\r") else raw


def _guarded(read: Callable[[], bytes], name: str) -> bytes:
    try:
        return read()
    except BROKEN as error:
        raise _unreadable(name, error) from error


@contextmanager
def _open_input(path: Path | str, name: str) -> Iterator[BinaryIO]:
    """A buffered binary stream of the unpacked bytes. Reading blocks no longer than until a line is there."""
    if str(path) == "-":
        if sys.stdin is None:
            raise DataError("stdin: is closed", "name a file")
        try:  # a reader of our own: a thread that waits in sys.stdin's would make Python abort when it ends
            stdin = open(os.dup(sys.stdin.fileno()), "rb")  # noqa: SIM115
        except (OSError, ValueError, AttributeError):  # replaced by something that is no file
            yield cast(BinaryIO, sys.stdin.buffer)
            return
        with stdin:
            yield stdin
        return
    path = Path(path)
    try:
        packed = path.open("rb")
        info = path.stat()
    except OSError as error:
        raise _unreadable(name, error) from error
    empty = stat.S_ISREG(info.st_mode) and info.st_size == 0
    with packed:
        yield packed if empty else unpacking(path.suffix, packed)


class _TextAsBytes(io.RawIOBase):
    """Stands in for stdout's bytes where stdout has been replaced by a stream of text."""

    def write(self, data: object) -> int:
        text = bytes(cast(bytes, data))
        sys.stdout.write(text.decode())
        return len(text)

    def flush(self) -> None:
        sys.stdout.flush()


def _unreadable(name: str, error: BaseException) -> DataError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    if isinstance(error, FileNotFoundError):
        return DataError(f"{name}: does not exist", "check the path")
    return DataError(f"{name}: cannot be read: {reason}", "check that the file is whole and may be read")


def _refused(name: str, error: OSError) -> NmtError | BrokenPipeError:
    if isinstance(error, BrokenPipeError):
        return error
    reason = error.strerror or str(error)
    return OutputError(f"{name}: cannot be written: {reason}", "check that the disk has room and may be written")
