"""Lines of text, read and written alike by every command.

Only byte 0x0A ends a line. A CR just before it belongs to the line end, and the last line may lack its end. NUL becomes
a space, a byte order mark at the start of a file is dropped, and nothing else is changed. Text is UTF-8 in any locale;
`.gz`, `.xz`, `.zst` and `.bz2` are packed and unpacked by suffix; `-` is stdin or stdout.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import stat
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from nmt.errors import DataError, NmtError, OutputError
from nmt.files import write_whole

_BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError)
_BLANKS = "".join(c for c in map(chr, range(0x3001)) if c.isspace()) + "\0\u200b\ufeff"
_LINE_ENDS = str.maketrans(dict.fromkeys("\0\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", " "))
_SURROGATES = re.compile("[\ud800-\udfff]")


def read_lines(path: Path | str, on_bad_bytes: str = "error", tally: Counter[str] | None = None) -> Iterator[str]:
    """The lines of `path` without their ends, each as soon as its end has arrived.

    `on_bad_bytes`: "error" raises DataError with file, line and byte at invalid UTF-8; "replace" puts U+FFFD in its
    place and counts it in ``tally["bad bytes"]``. Raises DataError also when the file is missing, unreadable or cut.
    """
    name = "stdin" if str(path) == "-" else str(path)
    with _open_input(path, name) as stream:
        number = 0
        while raw := _read_line(stream, name):
            number += 1
            if number == 1 and raw.startswith(codecs.BOM_UTF8):
                raw = raw[len(codecs.BOM_UTF8) :]
                if not raw:
                    return
            line = _decode(_without_end(raw), name, number, on_bad_bytes, tally)
            yield line.replace("\0", " ") if "\0" in line else line


def count_lines(path: Path | str) -> int:
    """How many lines `read_lines` gives, without decoding them. Raises DataError as it does."""
    name = str(path)
    lines, size, start, last = 0, 0, b"", b"\n"
    with _open_input(path, name) as stream:
        while chunk := _attempt(name, lambda: stream.read(1 << 20)):
            start = start if len(start) > 3 else (start + chunk)[:4]
            lines += chunk.count(b"\n")
            size += len(chunk)
            last = chunk[-1:]
    return 0 if start == codecs.BOM_UTF8 else lines + (last != b"\n")


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
        stdout = getattr(sys.stdout, "buffer", None) or _TextAsBytes()
        writer = LineWriter(cast(BinaryIO, stdout), "stdout")
        yield writer
        writer.flush()
        return
    path = Path(path)
    with write_whole(path) as stream, _packing(path, stream) as packed:
        yield LineWriter(packed, str(path))


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
    return 'convert the file to UTF-8, or let on_bad_bytes = "replace" put U+FFFD in its place'


def _without_end(raw: bytes) -> bytes:
    raw = raw[:-1] if raw.endswith(b"\n") else raw
    return raw[:-1] if raw.endswith(b"\r") else raw


def _read_line(stream: BinaryIO, name: str) -> bytes:
    try:
        return stream.readline()
    except _BROKEN as error:
        raise _unreadable(name, error) from error


def _attempt(name: str, read: object) -> bytes:
    try:
        return cast(bytes, read())  # type: ignore[operator]
    except _BROKEN as error:
        raise _unreadable(name, error) from error


@contextmanager
def _open_input(path: Path | str, name: str) -> Iterator[BinaryIO]:
    """A buffered binary stream of the unpacked bytes. Reading blocks no longer than until a line is there."""
    if str(path) == "-":
        if sys.stdin is None:
            raise DataError("stdin: is closed", "name a file")
        yield cast(BinaryIO, sys.stdin.buffer)
        return
    path = Path(path)
    try:
        packed = path.open("rb")
        info = path.stat()
    except OSError as error:
        raise _unreadable(name, error) from error
    empty = stat.S_ISREG(info.st_mode) and info.st_size == 0
    with packed:
        yield packed if empty else _unpacking(path.suffix, packed)


def _unpacking(suffix: str, stream: BinaryIO) -> BinaryIO:
    if suffix == ".gz":
        return cast(BinaryIO, gzip.GzipFile(fileobj=stream, mode="rb"))
    if suffix == ".xz":
        return cast(BinaryIO, lzma.LZMAFile(stream))
    if suffix == ".bz2":
        return cast(BinaryIO, bz2.BZ2File(stream))
    if suffix == ".zst":
        return cast(BinaryIO, io.BufferedReader(_Zstandard(stream), 1 << 17))
    return stream


@contextmanager
def _packing(path: Path, stream: BinaryIO) -> Iterator[BinaryIO]:
    """`stream`, packing by the suffix of `path`; the same lines give the same bytes, whenever they are written."""
    packed: BinaryIO
    if path.suffix == ".gz":
        packed = cast(BinaryIO, gzip.GzipFile("", "wb", 6, stream, mtime=0))
    elif path.suffix == ".xz":
        packed = cast(BinaryIO, lzma.LZMAFile(stream, "wb"))  # noqa: SIM115
    elif path.suffix == ".bz2":
        packed = cast(BinaryIO, bz2.BZ2File(stream, "wb"))
    elif path.suffix == ".zst":
        packed = cast(BinaryIO, zstandard.ZstdCompressor().stream_writer(stream, closefd=False))
    else:
        yield stream
        return
    with packed:
        yield packed


class _Zstandard(io.RawIOBase):
    """Unpacks Zstandard frames, one after another, and says when the last is cut, which zstandard's reader hides."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._packed = b""
        self._plain = b""
        self._begun = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast(bytearray, buffer))
        while not self._plain:
            if not self._more():
                return 0
        size = min(len(view), len(self._plain))
        view[:size] = self._plain[:size]
        self._plain = self._plain[size:]
        return size

    def _more(self) -> bool:
        """Unpack a little. False at the end of the file."""
        packed = self._packed or self._stream.read(1 << 16)
        self._packed = b""
        if not packed:
            if self._begun:
                raise EOFError("the file ends inside a Zstandard frame")
            return False
        self._begun = True
        self._plain = self._frame.decompress(packed)
        if self._frame.eof:
            self._packed = self._frame.unused_data
            self._frame = zstandard.ZstdDecompressor().decompressobj()
            self._begun = False
        return True


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
