"""Lines become chunks: none lost, none late."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.search.feed import chunks, live


@given(st.lists(st.one_of(st.none(), st.text(max_size=3))), st.integers(1, 6))
def test_chunks_hold_every_line_once_in_order(lines: list[str | None], size: int) -> None:
    made = list(chunks(lines, size))
    assert [line for chunk in made for line in chunk] == [line for line in lines if line is not None]
    assert all(0 < len(chunk) <= size for chunk in made)


def test_full_chunks_are_filled_and_a_pause_hands_on_the_rest() -> None:
    assert list(chunks(["a", "b", "c", None, "d", None, None, "e"], 2)) == [["a", "b"], ["c"], ["d"], ["e"]]


def test_a_pause_is_told_once_and_ends_with_the_next_line() -> None:
    more = threading.Event()

    def slow() -> Iterator[str]:
        yield "a"
        more.wait()
        yield "b"

    feed = live(slow())
    assert next(feed) == "a"
    assert next(feed) is None
    more.set()
    assert next(feed) == "b"
    assert [line for line in feed if line is not None] == []


@settings(max_examples=30)
@given(st.lists(st.text(max_size=3)), st.integers(1, 4))
def test_nothing_is_lost_however_little_is_read_ahead(lines: list[str], ahead: int) -> None:
    assert [line for line in live(lines, ahead) if line is not None] == lines


def test_an_error_in_reading_is_raised_after_the_lines_before_it() -> None:
    def broken() -> Iterator[str]:
        yield "a"
        raise RuntimeError("bad line")

    feed = live(broken())
    assert next(feed) == "a"
    with pytest.raises(RuntimeError, match="bad line"):
        for _ in feed:
            pass


def test_the_reader_stops_when_nobody_wants_more() -> None:
    stopped = threading.Event()

    def endless() -> Iterator[str]:
        try:
            while True:
                yield "a"
        finally:
            stopped.set()

    lines = endless()
    feed = live(lines, ahead=2)
    next(feed)
    feed.close()  # type: ignore[attr-defined]
    for thread in threading.enumerate():
        if thread.name == "nmt input":
            thread.join(timeout=5)
    lines.close()
    assert stopped.is_set()
