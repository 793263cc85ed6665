"""Sentences as ids in one memory-mapped file.

Layout, little-endian: a header of 128 bytes (see `_HEADER`), the ids of all sentences one after another in 16 bits, or
32 where the vocabulary needs them, zero bytes up to a multiple of four, then the length of each sentence in 32 bits.
The header holds the sizes, its own checksum, and the SHA-256 digest of all that follows it.
"""

from __future__ import annotations

import hashlib
import os
import struct
import tempfile
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from nmt.errors import DataError
from nmt.files import write_whole

_MAGIC = b"nmtshard"
_FORMAT = 1
_HEADER = struct.Struct("<8sIIQQQ32sI52x")  # magic, format, bytes an id, sentences, ids, vocabulary, sha256, crc32
_BUFFER = 1 << 20  # ids, or lengths, kept in memory before they are written; a multiple of _STRIDE
_LARGE = 1 << 30  # bytes of ids that are memory-mapped at most
_STRIDE = 32  # sentences between those whose places are kept in memory


class ShardWriter:
    """Appends sentences to a shard in constant memory; `open_shard` makes one."""

    def __init__(self, stream: BinaryIO, lengths: BinaryIO, vocabulary_size: int) -> None:
        self._stream = stream
        self._lengths = lengths
        self._vocabulary_size = vocabulary_size
        self._bytes = 2 if vocabulary_size <= 1 << 16 else 4
        self._digest = hashlib.sha256()
        self._waiting = array("q")
        self._waiting_lengths = array("q")
        self._sentences = self._ids = 0
        stream.write(bytes(_HEADER.size))

    def add(self, sequences: Iterable[Sequence[int]]) -> None:
        """Append sentences. Raises ValueError for an id outside the vocabulary."""
        for sequence in sequences:
            self._waiting.extend(sequence)
            self._waiting_lengths.append(len(sequence))
            if len(self._waiting) + len(self._waiting_lengths) > _BUFFER:
                self._flush()

    def finish(self) -> None:
        """Write what is left, the lengths and the header."""
        self._flush()
        self._write(bytes(-self._ids * self._bytes % 4))
        self._lengths.seek(0)
        while block := self._lengths.read(_BUFFER):
            self._write(block)
        self._stream.seek(0)
        self._stream.write(
            _header(self._bytes, self._sentences, self._ids, self._vocabulary_size, self._digest.digest())
        )

    def _flush(self) -> None:
        ids = np.frombuffer(self._waiting, dtype=np.int64) if self._waiting else np.zeros(0, dtype=np.int64)
        if ids.size and not (ids.min() >= 0 and ids.max() < self._vocabulary_size):
            raise ValueError(f"an id is outside the vocabulary of {self._vocabulary_size}")
        self._write(ids.astype(f"<u{self._bytes}").tobytes())
        self._lengths.write(np.array(self._waiting_lengths, dtype="<i4").tobytes())
        self._ids += len(self._waiting)
        self._sentences += len(self._waiting_lengths)
        self._waiting, self._waiting_lengths = array("q"), array("q")

    def _write(self, data: bytes) -> None:
        self._digest.update(data)
        self._stream.write(data)


@contextmanager
def open_shard(path: Path, vocabulary_size: int) -> Iterator[ShardWriter]:
    """A writer whose sentences become the shard `path`, whole, when the block ends. Raises OutputError."""
    with write_whole(path) as stream, tempfile.TemporaryFile(dir=path.parent) as lengths:
        writer = ShardWriter(stream, lengths, vocabulary_size)
        yield writer
        writer.finish()


def write_shard(path: Path, sequences: Iterable[Sequence[int]], vocabulary_size: int) -> None:
    """Write sentences of ids as the shard `path`, whole, in constant memory.

    Raises ValueError for an id outside the vocabulary, OutputError when the file cannot be written.
    """
    with open_shard(path, vocabulary_size) as writer:
        writer.add(sequences)


class Shard:
    """Sentences of ids, read from disk as they are asked for. `shard[i]` is a view of unsigned integers."""

    def __init__(
        self,
        path: Path,
        ids: np.ndarray | Far,
        lengths: np.ndarray,
        starts: np.ndarray,
        vocabulary_size: int,
        sha256: str,
    ) -> None:
        self.path = path
        self.lengths = lengths
        """Ids of each sentence, the end mark not counted, as np.int32; memory-mapped too."""
        self.vocabulary_size = vocabulary_size
        self.sha256 = sha256
        """Digest of all that follows the header, in hexadecimal."""
        self._ids = ids
        self._starts = starts  # of every _STRIDE-th sentence: those of all would take more memory than the lengths

    @classmethod
    def open(cls, path: Path) -> Shard:
        """The shard in the file `path`. Raises DataError when it is missing, cut, or visibly damaged."""
        width, sentences, tokens, vocabulary_size, digest = _read_header(path)
        padded = tokens * width + -tokens * width % 4
        lengths = _mapped(path, "<i4", _HEADER.size + padded, sentences)
        starts = _starts(lengths)
        if starts is None or starts[-1] != tokens:
            raise _damaged(path, "its sentence lengths do not add up")
        ids = (_mapped if padded <= _LARGE else Far)(path, f"<u{width}", _HEADER.size, tokens)
        return cls(path, ids, lengths, starts, vocabulary_size, digest.hex())

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> np.ndarray:
        if not 0 <= index < len(self.lengths):
            raise IndexError(f"sentence {index} of {len(self.lengths)}")
        start = int(self._starts[index // _STRIDE]) + int(self.lengths[index - index % _STRIDE : index].sum())
        return self._ids[start : start + int(self.lengths[index])]

    def take(self, rows: np.ndarray) -> list[np.ndarray]:
        """Several sentences, by their numbers. Raises IndexError."""
        if len(beyond := rows[(rows < 0) | (rows >= len(self.lengths))]):
            raise IndexError(f"sentence {beyond[0]} of {len(self.lengths)}")
        blocks = rows // _STRIDE
        before_RS = blocks[:, None] * _STRIDE + np.arange(_STRIDE)
        lengths_RS = self.lengths[np.minimum(before_RS, len(self.lengths) - 1)]
        starts = self._starts[blocks] + (lengths_RS * (before_RS < rows[:, None])).sum(1, dtype=np.int64)
        ends = starts + self.lengths[rows]
        return [self._ids[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]

    def counts(self) -> np.ndarray:
        """How often each id of the vocabulary stands in the shard, as int64; reads all of it, a block at a time."""
        found = np.zeros(self.vocabulary_size, dtype=np.int64)
        for start in range(0, len(self._ids), _BUFFER):
            found += np.bincount(self._ids[start : start + _BUFFER], minlength=self.vocabulary_size)
        return found

    def verify(self) -> None:
        """Read all of the file. Raises DataError when a byte of it has changed since it was written."""
        digest = hashlib.sha256()
        with self.path.open("rb") as stream:
            stream.seek(_HEADER.size)
            while block := stream.read(_BUFFER):
                digest.update(block)
        if digest.hexdigest() != self.sha256:
            raise _damaged(self.path, "its checksum does not agree")


def _header(width: int, sentences: int, ids: int, vocabulary_size: int, digest: bytes) -> bytes:
    values = (_MAGIC, _FORMAT, width, sentences, ids, vocabulary_size, digest)
    return _HEADER.pack(*values, zlib.crc32(_HEADER.pack(*values, 0)))


def _read_header(path: Path) -> tuple[int, int, int, int, bytes]:
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            head = stream.read(_HEADER.size)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}", "make it again with nmt bpe RECIPE") from error
    if len(head) < _HEADER.size or not head.startswith(_MAGIC):
        raise _damaged(path, "it does not begin as a shard does")
    _, form, width, sentences, ids, vocabulary_size, digest, _ = _HEADER.unpack(head)
    if form != _FORMAT:
        raise DataError(f"{path}: has shard format {form}; this version reads {_FORMAT}", "run nmt bpe RECIPE again")
    if head != _header(width, sentences, ids, vocabulary_size, digest) or width not in (2, 4):
        raise _damaged(path, "its header has changed")
    expected = _HEADER.size + ids * width + -ids * width % 4 + sentences * 4
    if size != expected:
        raise _damaged(path, f"it has {size} bytes, {expected} are expected")
    return width, sentences, ids, vocabulary_size, digest


class Far:
    """Ids that are read from their file each time: a memory map's pages would count as this process's memory."""

    _file = -1

    def __init__(self, path: Path, kind: str, offset: int, count: int) -> None:
        self._kind, self._offset, self._count = np.dtype(kind), offset, count
        self._file = os.open(path, os.O_RDONLY)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, part: slice) -> np.ndarray:
        start, end, _ = part.indices(self._count)
        width = self._kind.itemsize
        return np.frombuffer(os.pread(self._file, (end - start) * width, self._offset + start * width), self._kind)

    def __del__(self) -> None:
        if self._file >= 0:
            os.close(self._file)


def _mapped(path: Path, kind: str, offset: int, count: int) -> np.ndarray:
    return np.asarray(np.memmap(path, kind, "r", offset, (count,))) if count else np.zeros(0, kind)


def _starts(lengths: np.ndarray) -> np.ndarray | None:
    """Where every _STRIDE-th sentence starts, and the last one ends; None where a length is below nothing."""
    sums = [np.zeros(1, dtype=np.int64)]
    for start in range(0, len(lengths), _BUFFER):
        block = lengths[start : start + _BUFFER]
        if (block < 0).any():
            return None
        sums.append(np.add.reduceat(block, np.arange(0, len(block), _STRIDE), dtype=np.int64))
    return np.cumsum(np.concatenate(sums))


def _damaged(path: Path, why: str) -> DataError:
    return DataError(f"{path}: is damaged: {why}", "remove it and make it again with nmt bpe RECIPE")
