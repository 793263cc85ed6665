"""Take named files out of tar and zip archives, and plain lines out of SGML test sets.

Only files that the recipe names are read, and they go where the recipe says: an archive's own paths are never used.
"""

from __future__ import annotations

import bz2
import gzip
import html
import lzma
import re
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from nmt.corpus.lines import one_line, open_lines
from nmt.errors import DataError
from nmt.events import Event, Notice
from nmt.files import write_whole
from nmt.schema import nearest

_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, RuntimeError)
_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)
_PACKED: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


@dataclass(frozen=True)
class Member:
    """`name` inside the archive (empty: the download itself), the file it becomes, whether to take SGML segments."""

    name: str
    file: Path
    sgm: bool = False


def extract(archive: Path, members: Sequence[Member]) -> Iterator[Event]:
    """Write those of `members` that aren't there yet, each whole or not at all.

    Raises DataError when the archive is damaged or lacks a member, OutputError when a file cannot be written.
    """
    wanted = [member for member in members if not member.file.exists()]
    if not wanted:
        return
    found: set[Member] = set()
    names: list[str] = []
    try:
        for name, stream in _contents(archive):
            names.append(name)
            for member in wanted:
                if member not in found and _same(name, member.name):
                    _write(stream, member, archive)
                    found.add(member)
                    yield Notice(f"unpacked {member.file}")
                    break
            if len(found) == len(wanted):
                return
    except _DAMAGE as error:
        raise DataError(f"{archive}: is damaged: {error}", f"delete {archive} and download again") from error
    missing = next(member for member in wanted if member not in found)
    guess = nearest(missing.name, names)
    raise DataError(f"{archive}: holds no {missing.name}", f"did you mean {guess}?" if guess else "list the archive")


def segments(text: str) -> list[str]:
    """The segments of an SGML test set, each one line of plain text."""
    entities = re.compile(r"&(amp|lt|gt|quot|apos);")
    plain = (entities.sub(lambda match: html.unescape(match[0]), part) for part in _SEGMENT.findall(text))
    return [one_line(part).strip() for part in plain]


def _contents(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Name and bytes of every regular file; a file that is no archive has one, without a name."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            for info in opened.infolist():
                if not info.is_dir():
                    with opened.open(info) as stream:
                        yield info.filename, stream
    elif re.search(r"\.(tar(\.\w+)?|tgz|tbz2?|txz)$", archive.name.lower()):
        with tarfile.open(archive, "r:*") as tar:
            for entry in tar:
                inside = tar.extractfile(entry) if entry.isreg() else None
                if inside is not None:
                    with inside:
                        yield entry.name, inside
    else:
        with _unpacked(archive) as plain:
            yield "", plain


@contextmanager
def _unpacked(file: Path) -> Iterator[BinaryIO]:
    opener = _PACKED.get(file.suffix.lower(), open)
    with opener(file, "rb") as stream:
        yield cast(BinaryIO, stream)


@contextmanager
def _packing(output: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    if suffix not in _PACKED:
        yield output
        return
    with _PACKED[suffix](output, "wb") as packed:
        yield packed


def _same(name: str, wanted: str) -> bool:
    return name.removeprefix("./") == wanted.removeprefix("./")


def _write(stream: IO[bytes], member: Member, archive: Path) -> None:
    """Bytes as they are, unless the suffixes say that they are to be packed or unpacked on the way."""
    member.file.parent.mkdir(parents=True, exist_ok=True)
    inside, outside = Path(member.name).suffix.lower(), member.file.suffix.lower()
    if inside != outside and member.name and inside in _PACKED:
        stream = _PACKED[inside](stream, "rb")
    if not member.sgm:
        with write_whole(member.file) as output, _packing(output, outside if inside != outside else "") as packed:
            shutil.copyfileobj(stream, packed, 1 << 20)
        return
    try:
        lines = segments(stream.read().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"{archive}: {member.name}: byte {error.start} is not valid UTF-8", "check the file") from error
    if not lines:
        raise DataError(f"{archive}: {member.name or archive.name} has no <seg> elements", "leave sgm out")
    with open_lines(member.file) as writer:
        for line in lines:
            writer.write(line)
