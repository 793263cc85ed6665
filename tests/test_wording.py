"""Numbers in sentences agree with their nouns, in every message of the program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nmt.wording import agreeing, bad_bytes, counted

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("number", "words", "told"),
    [
        (0, ("line",), "0 lines"),
        (1, ("line",), "1 line"),
        (2, ("line",), "2 lines"),
        (12345, ("line",), "12,345 lines"),
        (1, ("pair is", "pairs are"), "1 pair is"),
        (3, ("pair is", "pairs are"), "3 pairs are"),
    ],
)
def test_a_number_agrees_with_its_noun(number: int, words: tuple[str, ...], told: str) -> None:
    assert counted(number, *words) == told


def test_a_unit_agrees_with_the_number_before_it() -> None:
    assert [agreeing(number, "updates") for number in (0, 1, 2)] == ["updates", "update", "updates"]
    assert agreeing(1, "") == ""


def test_bytes_that_are_no_text_are_told_alike_everywhere() -> None:
    assert bad_bytes(1) == "1 byte was not valid UTF-8; U+FFFD stands in its place"
    assert bad_bytes(1000) == "1,000 bytes were not valid UTF-8; U+FFFD stands in their place"


def test_no_message_tells_a_length_or_a_setting_with_a_plural_of_its_own() -> None:
    """`{len(lines)} lines` would say "1 lines"; what stands behind "of" or "than" is many by its meaning."""
    told = re.compile(r"(\S+ )\{(?:len\([^{}]*\)|[\w.]*?(\w+)(?::,)?)\} (lines|sentences|threads|pairs|epochs)\b")
    for file in [*(ROOT / "nmt").rglob("*.py"), *(ROOT / "cli").rglob("*.py")]:
        counts = [match for match in told.finditer(file.read_text()) if match[2] in {None, match[3]}]
        found = [match[0] for match in counts if match[1].strip() not in {"of", "than"}]
        assert not found, f"{file.name}: {found}"
