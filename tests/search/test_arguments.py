"""What `translate` is given: lines, and files that may not be the same."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import OutputError, SettingsError
from nmt.search.files import rescore_files, translate_file
from nmt.search.translate import Translator
from nmt.subwords.files import encode_file


@pytest.mark.parametrize("lines", ["bal kor", b"bal kor", [b"bal"], [1, 2], ["bal", 7], [None], ["bal", None]])
def test_what_is_no_list_of_strings_is_named(random_translator: Translator, lines: Any) -> None:
    with pytest.raises(TypeError, match="list of lines|a line is a string"):
        random_translator.translate(lines)


def test_none_is_a_pause_of_a_stream_and_no_line_of_a_list(random_translator: Translator) -> None:
    assert len(list(random_translator.stream(["bal", None, "kor"]))) == 2
    with pytest.raises(TypeError, match="a line is a string; None is NoneType"):
        random_translator.translate(["bal", None, "kor"])  # type: ignore[list-item]


def test_a_setting_of_a_wrong_name_is_one_error_that_tells_the_right_one(random_translator: Translator) -> None:
    with pytest.raises(SettingsError) as caught:
        random_translator.translate(["bal"], bem=3)
    told = "".join(traceback.format_exception(caught.value))
    assert "did you mean beam?" in told and told.count("Traceback") == 1


def test_a_line_may_bring_its_end_as_files_give_it(random_translator: Translator) -> None:
    assert random_translator.translate(["bal kor\n", "bal kor\r\n"]) == random_translator.translate(["bal kor"]) * 2


def test_no_command_overwrites_what_it_reads(random_translator: Translator, tmp_path: Path) -> None:
    file, other = tmp_path / "in.aa", tmp_path / "in.bb"
    for path in (file, other):
        path.write_text("bal kor\n")
    link = tmp_path / "link"
    link.symlink_to(file)
    vocabulary, cleaner = random_translator.source_vocabulary, random_translator.source_cleaner
    for work in (
        translate_file(random_translator, file, link),
        rescore_files(random_translator, other, file, link),
        encode_file(vocabulary, cleaner, file, link),
    ):
        with pytest.raises(OutputError, match="is the input, which would be overwritten"):
            list(work)
    assert file.read_text() == "bal kor\n"
