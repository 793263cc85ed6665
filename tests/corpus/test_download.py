"""Downloads against a server on this machine that cuts, ignores, refuses and changes its mind."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from nmt.checking import check
from nmt.corpus.archives import Member
from nmt.corpus.config import DownloadConfig
from nmt.corpus.download import TRIES, Download, fetch, fetch_all
from nmt.errors import DataError, OutputError, RecipeError
from nmt.events import Caution, Event, Notice, Progress

CONTENT = bytes(range(256)) * 4096  # 1 MiB
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Behaviour:
    """What the server has and how it misbehaves; `requests` is what it was asked for."""

    content: bytes = CONTENT
    etag: str | None = '"one"'
    modified: str | None = None
    ranges: bool = True
    cuts: list[int] = field(default_factory=list)
    """After so many bytes of the body the connection ends, once each."""
    statuses: list[int] = field(default_factory=list)
    """Statuses to answer with before anything else."""
    requests: list[str] = field(default_factory=list)
    """The Range header of each request, or an empty string."""


class Handler(BaseHTTPRequestHandler):
    """Serves one file, as `server.behaviour` says."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        does: Behaviour = self.server.behaviour  # type: ignore[attr-defined]
        asked = self.headers.get("Range", "")
        does.requests.append(asked)
        self.close_connection = True
        if does.statuses:
            self.send_response(does.statuses.pop(0))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        start = self.start(does, asked)
        if start >= len(does.content) and start:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(does.content)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = does.content[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(does.content) - 1}/{len(does.content)}")
        if does.etag:
            self.send_header("ETag", does.etag)
        if does.modified:
            self.send_header("Last-Modified", does.modified)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: does.cuts.pop(0)] if does.cuts else body)

    @staticmethod
    def start(does: Behaviour, asked: str) -> int:
        """Where the answer begins: a range counts only while the file is still the one asked for."""
        match = re.fullmatch(r"bytes=(\d+)-", asked)
        return int(match[1]) if match and does.ranges else 0

    def log_message(self, format: str, *args: object) -> None:
        pass


class ConditionalHandler(Handler):
    """Heeds If-Range."""

    def do_GET(self) -> None:
        does: Behaviour = self.server.behaviour  # type: ignore[attr-defined]
        condition = self.headers.get("If-Range")
        if condition is not None and condition not in {does.etag, does.modified}:
            whole = does.ranges
            does.ranges = False
            super().do_GET()
            does.ranges = whole
            return
        super().do_GET()


class Server:
    """A server thread with its behaviour and address."""

    def __init__(self) -> None:
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), ConditionalHandler)
        self.does = Behaviour()
        self.http.behaviour = self.does  # type: ignore[attr-defined]
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}/corpus.bin"

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    running = Server()
    yield running
    running.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "corpus.bin"


def get(server: Server, file: Path, sha256: str | None = DIGEST, waits: list[float] | None = None) -> list[Event]:
    """Run a download with pauses that are only noted."""
    return list(fetch(Download(server.url, file, sha256), wait=(waits if waits is not None else []).append))


def leftovers(file: Path) -> list[str]:
    return sorted(path.name for path in file.parent.iterdir() if path != file)


def test_a_file_arrives_whole_with_progress_and_nothing_beside_it(server: Server, file: Path) -> None:
    events = get(server, file)
    assert file.read_bytes() == CONTENT
    assert leftovers(file) == []
    counts = [event for event in events if isinstance(event, Progress)]
    assert [counts[0].done, counts[-1].done, counts[-1].total] == [0, len(CONTENT), len(CONTENT)]
    assert not any(isinstance(event, Caution) for event in events)


def test_a_cut_connection_is_taken_up_where_it_broke_off(server: Server, file: Path) -> None:
    server.does.cuts += [300_000, 200_000]
    waits: list[float] = []
    get(server, file, waits=waits)
    assert file.read_bytes() == CONTENT
    assert server.does.requests == ["", "bytes=300000-", "bytes=500000-"]
    assert waits == [1.0, 1.0]  # progress was made in between, so pauses do not grow


def test_an_interrupted_command_is_taken_up_by_the_next_one(server: Server, file: Path) -> None:
    server.does.cuts += [300_000] + [0] * TRIES
    with pytest.raises(DataError, match="in a row") as caught:
        get(server, file)
    assert "again" in caught.value.hint
    assert not file.exists()
    server.does.requests.clear()
    server.does.cuts.clear()
    get(server, file)
    assert file.read_bytes() == CONTENT
    assert server.does.requests == ["bytes=300000-"]


def test_closing_the_generator_halfway_leaves_a_part_that_is_continued(server: Server, file: Path) -> None:
    events = fetch(Download(server.url, file, DIGEST))
    for event in events:
        if isinstance(event, Progress) and event.done:
            break
    events.close()  # type: ignore[attr-defined]
    assert not file.exists()
    get(server, file)
    assert file.read_bytes() == CONTENT
    assert server.does.requests[1].startswith("bytes=")


def test_a_server_without_ranges_is_asked_for_everything_again(server: Server, file: Path) -> None:
    server.does.ranges = False
    server.does.cuts += [300_000]
    get(server, file)
    assert file.read_bytes() == CONTENT


def test_a_file_that_changed_on_the_server_is_not_patched_together(server: Server, file: Path) -> None:
    server.does.cuts += [300_000] + [0] * TRIES
    with pytest.raises(DataError):
        get(server, file, None)
    server.does.cuts.clear()
    server.does.content, server.does.etag = CONTENT[::-1], '"two"'
    get(server, file, None)
    assert file.read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize(
    ("etag", "modified", "continued"),
    [(None, None, False), ('W/"weak"', None, False), (None, "Mon, 05 Jan 2015 10:00:00 GMT", True)],
)
def test_only_what_can_be_recognised_is_continued(
    server: Server, file: Path, etag: str | None, modified: str | None, continued: bool
) -> None:
    server.does.etag, server.does.modified = etag, modified
    server.does.cuts += [300_000]
    get(server, file)
    assert file.read_bytes() == CONTENT
    assert server.does.requests[1] == ("bytes=300000-" if continued else "")


def test_a_part_that_is_already_everything_is_accepted(server: Server, file: Path) -> None:
    server.does.cuts += [0] * TRIES
    with pytest.raises(DataError):
        get(server, file)
    file.with_name("corpus.bin.partial").write_bytes(CONTENT)
    server.does.cuts.clear()
    get(server, file)
    assert file.read_bytes() == CONTENT


def test_a_part_longer_than_the_file_is_thrown_away(server: Server, file: Path) -> None:
    server.does.cuts += [0] * TRIES
    with pytest.raises(DataError):
        get(server, file)
    file.with_name("corpus.bin.partial").write_bytes(CONTENT + b"more")
    server.does.cuts.clear()
    get(server, file)
    assert file.read_bytes() == CONTENT


def test_a_part_of_another_address_is_not_continued(server: Server, file: Path) -> None:
    server.does.cuts += [300_000] + [0] * TRIES
    with pytest.raises(DataError):
        get(server, file)
    server.does.cuts.clear()
    list(fetch(Download(server.url + "?other", file, DIGEST)))
    assert server.does.requests[-1] == ""


def test_wrong_content_never_gets_the_name(server: Server, file: Path) -> None:
    server.does.content = b"<html>not found</html>"
    with pytest.raises(DataError) as caught:
        get(server, file)
    assert DIGEST in caught.value.problem
    assert hashlib.sha256(server.does.content).hexdigest() in caught.value.problem
    assert list(file.parent.iterdir()) == []


def test_a_bad_continuation_is_replaced_by_a_fresh_download(server: Server, file: Path) -> None:
    server.does.cuts += [300_000] + [0] * TRIES
    with pytest.raises(DataError):
        get(server, file)
    server.does.cuts.clear()
    file.with_name("corpus.bin.partial").write_bytes(b"x" * 300_000)
    events = get(server, file)
    assert file.read_bytes() == CONTENT
    assert any(isinstance(event, Caution) and "afresh" in event.text for event in events)


def test_without_a_digest_the_file_s_own_is_printed(server: Server, file: Path) -> None:
    events = get(server, file, None)
    assert any(isinstance(event, Caution) and DIGEST in event.text for event in events)


def test_what_is_there_is_not_fetched_again(server: Server, file: Path) -> None:
    get(server, file)
    server.does.requests.clear()
    assert any(isinstance(event, Notice) and "already" in event.text for event in get(server, file))
    assert server.does.requests == []


def test_a_file_in_the_way_with_another_digest_is_an_error(server: Server, file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"mine")
    with pytest.raises(DataError, match="is not the recipe's") as caught:
        get(server, file)
    assert "delete" in caught.value.hint
    assert file.read_bytes() == b"mine"


def test_temporary_refusals_are_tried_again_with_growing_pauses(server: Server, file: Path) -> None:
    server.does.statuses += [503, 429, 500]
    waits: list[float] = []
    get(server, file, waits=waits)
    assert file.read_bytes() == CONTENT
    assert waits == [1.0, 2.0, 4.0]


def test_attempts_end(server: Server, file: Path) -> None:
    server.does.statuses += [503] * 50
    waits: list[float] = []
    with pytest.raises(DataError, match="503"):
        get(server, file, waits=waits)
    assert len(server.does.requests) == TRIES
    assert len(waits) == TRIES - 1


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_final_refusal_is_an_error_at_once(server: Server, file: Path, status: int) -> None:
    server.does.statuses += [status]
    with pytest.raises(DataError, match=str(status)):
        get(server, file)
    assert len(server.does.requests) == 1


def test_a_server_that_is_not_there_is_an_error_that_says_so(file: Path, server: Server) -> None:
    url = server.url
    server.close()
    with pytest.raises(DataError, match="refused"):
        list(fetch(Download(url, file), wait=lambda _: None))


def test_a_folder_that_cannot_be_made_is_an_error(server: Server, tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file")
    with pytest.raises(OutputError):
        get(server, tmp_path / "folder" / "corpus.bin")


def test_unpacked_archives_need_not_be_kept(server: Server, tmp_path: Path) -> None:
    member = Member("train.en", tmp_path / "train.en")
    member.file.write_text("there")
    events = list(fetch_all([Download(server.url, tmp_path / "gone.tgz", None, (member,))], [member.file]))
    assert server.does.requests == []
    assert not any(isinstance(event, Caution) for event in events)


def test_files_that_no_download_brings_are_named_at_the_end(tmp_path: Path) -> None:
    (event,) = fetch_all([], [tmp_path / "train.en"])
    assert isinstance(event, Caution) and "train.en" in event.text


@pytest.mark.parametrize(
    "values",
    [
        {"url": "file:///etc/passwd", "file": "x"},
        {"url": "ftp://example.org/x", "file": "x"},
        {"url": "https://example.org/x", "file": "x", "sha256": "abc"},
        {"url": "https://example.org/x"},
        {
            "url": "https://example.org/x",
            "file": "x",
            "extract": [{"member": "a", "file": "b"}, {"member": "a", "file": "c"}],
        },
    ],
)
def test_a_download_with_an_odd_address_digest_or_member_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(RecipeError):
        check(DownloadConfig, values, "recipe.toml")
