"""Downloads: resumed where they broke off, checked, and under their final name only once whole."""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from nmt.corpus.archives import Member, extract
from nmt.errors import DataError, OutputError
from nmt.events import Caution, Event, Notice, Progress
from nmt.files import sha256

CHUNK = 1 << 18
TRIES = 6
TIMEOUT = 60.0
_AGAIN = {408, 425, 429, 500, 502, 503, 504}
_BROKEN = (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError)


@dataclass(frozen=True)
class Download:
    """A file to fetch: where it comes from, where it goes, its digest if known, and what to take out of it."""

    url: str
    file: Path
    sha256: str | None = None
    members: tuple[Member, ...] = ()


class _Changed(Exception):
    """What lies in the partial file belongs to something the server no longer has."""


def pause(failures: int) -> float:
    """Seconds to wait after so many failures in a row: 1, 2, 4 … at most 30."""
    return float(min(2 ** (failures - 1), 30))


def fetch_all(
    downloads: Sequence[Download], needed: Sequence[Path] = (), wait: Callable[[float], object] = time.sleep
) -> Iterator[Event]:
    """Fetch and unpack everything that isn't there yet; at the end name those of `needed` that are still missing.

    Raises DataError when a server refuses or a digest is wrong, OutputError when a file cannot be written.
    """
    for download in downloads:
        if download.members and all(member.file.exists() for member in download.members):
            yield Notice(f"download: {download.file.name}: unpacked already")
            continue
        yield from fetch(download, wait)
        yield from extract(download.file, download.members)
    missing = [str(path) for path in needed if not path.exists()]
    if missing:
        yield Caution(f"still missing: {', '.join(missing)}; see the recipe's first lines")


def fetch(download: Download, wait: Callable[[float], object] = time.sleep) -> Iterator[Event]:
    """Fetch one file, unless it is there. What an interrupted attempt got is kept in NAME.partial and continued.

    `wait` is called with the seconds of each pause between attempts. Raises as `fetch_all` does.
    """
    file = download.file
    if file.exists():
        if download.sha256 and sha256(file) != download.sha256:
            raise DataError(f"{file}: its sha256 is not the recipe's {download.sha256}", f"delete {file} and run again")
        yield Notice(f"download: {file.name}: there already")
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = _Partial(file, download.url)
        resumed = partial.size > 0
        yield from _persist(download, partial, wait)
        if resumed and download.sha256 and sha256(partial.path) != download.sha256:
            yield Caution(f"{file.name}: the continued download is not what the recipe expects; starting afresh")
            partial.clear()
            yield from _persist(download, partial, wait)
        yield from _accept(download, partial)
    except OSError as error:
        raise OutputError(
            f"{file}: cannot be written: {error.strerror or error}", "check folder and free space"
        ) from error


def _persist(download: Download, partial: _Partial, wait: Callable[[float], object]) -> Iterator[Event]:
    """Attempts until the file is whole, giving up after TRIES in a row that got no further than before."""
    failures, furthest = 0, partial.size
    while True:
        try:
            yield from _attempt(download, partial)
            return
        except _Changed:
            partial.clear()
            reason, least = "the file changed on the server", 0.0
        except urllib.error.HTTPError as error:
            if error.code not in _AGAIN:
                raise DataError(f"{download.url}: the server says {error.code} {error.reason}", "check url") from error
            reason, least = f"the server says {error.code} {error.reason}", _retry_after(error)
        except _BROKEN as error:
            reason, least = _reason(error), 0.0
        failures = 1 if partial.size > furthest else failures + 1
        furthest = max(furthest, partial.size)
        if failures >= TRIES:
            raise DataError(
                f"{download.url}: {reason}, {failures} times in a row", "run the same command again to go on from here"
            )
        yield Notice(f"download: {download.file.name}: {reason}; trying again")
        wait(max(pause(failures), least))


def _attempt(download: Download, partial: _Partial) -> Iterator[Event]:
    """One request that fetches what is missing. Raises _Changed, HTTPError or another of _BROKEN when it does not."""
    request = urllib.request.Request(download.url, headers={"User-Agent": "nmt", **partial.range_headers()})
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and partial.size:  # nothing beyond what we have: it is whole, or it is another file
            if error.headers.get("Content-Range") == f"bytes */{partial.size}":
                return
            raise _Changed from error
        raise
    with response:
        if response.status == 206:
            if not str(response.headers.get("Content-Range", "")).startswith(f"bytes {partial.size}-"):
                raise _Changed
        else:
            partial.clear()
        partial.remember(response.headers)
        left = response.headers.get("Content-Length")
        total = partial.size + int(left) if left is not None else None
        with partial.path.open("ab") as stream:
            yield from _copy(response, stream, download.file.name, partial.size, total)
            stream.flush()
            os.fsync(stream.fileno())


def _copy(
    response: http.client.HTTPResponse, stream: BinaryIO, name: str, done: int, total: int | None
) -> Iterator[Event]:
    label = f"download: {name}"
    yield Progress(label, done, total, "bytes")
    while chunk := _receive(response):
        stream.write(chunk)
        done += len(chunk)
        yield Progress(label, done, total, "bytes")
    if total is not None and done < total:
        raise http.client.IncompleteRead(b"", total - done)


def _receive(response: http.client.HTTPResponse) -> bytes:
    """The next bytes. What the network does wrong becomes a URLError, so that it isn't taken for the disk's fault."""
    try:
        return response.read(CHUNK)
    except OSError as error:
        raise urllib.error.URLError(error) from error


def _accept(download: Download, partial: _Partial) -> Iterator[Event]:
    """Check the whole file and give it its name."""
    digest = sha256(partial.path)
    if download.sha256 and digest != download.sha256:
        partial.clear()
        raise DataError(
            f"{download.url}: sha256 is {digest}, the recipe says {download.sha256}; nothing was kept",
            "the file has changed or the recipe is wrong: compare with the publisher's digest",
        )
    partial.finish()
    if not download.sha256:
        yield Caution(
            f'{download.file.name}: the recipe has no digest to check it by; this file has sha256 = "{digest}"'
        )
    yield Notice(f"download: {download.file}")


class _Partial:
    """NAME.partial and, beside it, what identifies the file it is a part of."""

    def __init__(self, file: Path, url: str) -> None:
        self.file, self.url = file, url
        self.path = file.with_name(file.name + ".partial")
        self.note = file.with_name(file.name + ".partial.json")
        self.validator = self._recall()
        if not self.validator:  # nothing tells whether the server still has the same file
            self.clear()

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def range_headers(self) -> dict[str, str]:
        """Ask for the rest, on condition that the file is still the same one; otherwise the server sends all of it."""
        if not self.size or not self.validator:
            return {}
        return {"Range": f"bytes={self.size}-", "If-Range": self.validator}

    def remember(self, headers: http.client.HTTPMessage) -> None:
        tag = headers.get("ETag", "")
        self.validator = tag if tag and not tag.startswith("W/") else headers.get("Last-Modified", "")
        self.note.write_text(json.dumps({"url": self.url, "validator": self.validator}), encoding="utf-8")

    def clear(self) -> None:
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)

    def finish(self) -> None:
        os.replace(self.path, self.file)
        self.note.unlink(missing_ok=True)

    def _recall(self) -> str:
        try:
            note = json.loads(self.note.read_text(encoding="utf-8"))
            return str(note["validator"]) if note["url"] == self.url else ""
        except (OSError, ValueError, KeyError, TypeError):
            return ""


def _reason(error: BaseException) -> str:
    if isinstance(error, http.client.IncompleteRead):
        return f"the connection ended {error.expected:,} bytes early" if error.expected else "the connection was cut"
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    return str(getattr(inner, "strerror", None) or inner or type(inner).__name__)


def _retry_after(error: urllib.error.HTTPError) -> float:
    value = error.headers.get("Retry-After", "") if error.headers else ""
    return min(float(value), 60.0) if value.isdigit() else 0.0
