"""Streams of .gz, .xz, .bz2 and .zst files, chosen by suffix; a file that is cut short is an error in each of them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

import zstandard

BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError)
"""What reading a damaged or cut file may raise."""


def unpacking(suffix: str, stream: BinaryIO) -> BinaryIO:
    """The unpacked bytes of `stream`; any other suffix is plain text. Reading may raise one of `BROKEN`."""
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
def packing(suffix: str, stream: BinaryIO) -> Iterator[BinaryIO]:
    """A stream that packs into `stream`; the same bytes are packed the same, whenever and under whatever name."""
    packed: BinaryIO
    if suffix == ".gz":
        packed = cast(BinaryIO, gzip.GzipFile("", "wb", 6, stream, mtime=0))
    elif suffix == ".xz":
        packed = cast(BinaryIO, lzma.LZMAFile(stream, "wb"))  # noqa: SIM115  # closed below
    elif suffix == ".bz2":
        packed = cast(BinaryIO, bz2.BZ2File(stream, "wb"))
    elif suffix == ".zst":
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
        self._plain = memoryview(b"")
        self._inside = False

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
            if self._inside:
                raise EOFError("the file ends inside a Zstandard frame")
            return False
        self._plain = memoryview(self._frame.decompress(packed))
        self._inside = not self._frame.eof
        if self._frame.eof:
            self._packed = self._frame.unused_data
            self._frame = zstandard.ZstdDecompressor().decompressobj()
        return True
