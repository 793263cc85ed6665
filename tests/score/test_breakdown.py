"""Groups of lines: each line in one of them, each score that of its lines alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import sacrebleu
from score.systems import references, system

from nmt.errors import DataError
from nmt.score.breakdown import bucket, by_length, by_tag, range_names
from nmt.score.config import BleuConfig, ChrfConfig
from nmt.score.texts import Texts

LINES = references()
METRICS = [BleuConfig().build("en"), ChrfConfig().build("en")]


def texts(*, source: list[str] | None = None, lines: list[str] = LINES) -> Texts:
    systems = (system(lines, 0.2, 1), system(lines, 0.4, 2))
    return Texts(("a", "b"), systems, ("r",), (lines,), source)


def test_ranges_have_names_and_every_length_one_range() -> None:
    assert range_names((0, 1, 2, 5, 10)) == ["0", "1", "2-4", "5-9", "10+"]
    assert [bucket(value, (0, 1, 2, 5, 10)) for value in (0, 1, 2, 4, 5, 9, 10, 999)] == [0, 1, 2, 2, 3, 3, 4, 4]


def test_groups_by_length_are_scored_as_sets_of_their_own() -> None:
    given = texts()
    found = by_length(given, METRICS, "en", "reference")
    assert found.title == "length of the reference in words"
    assert [group.name for group in found.groups] == ["0-9", "10-19", "20-29"]
    assert sum(group.lines for group in found.groups) == len(LINES)
    rows = [i for i, line in enumerate(LINES) if 10 <= len(line.split()) < 20]
    middle = found.groups[1]
    assert middle.lines == len(rows)
    for lines, scores in zip(given.systems, middle.scores, strict=True):
        own, wanted = [lines[i] for i in rows], [[LINES[i] for i in rows]]
        assert scores[0].value == sacrebleu.corpus_bleu(own, wanted).score
        assert scores[1].value == sacrebleu.corpus_chrf(own, wanted).score


def test_the_source_may_decide_and_must_then_be_known() -> None:
    found = by_length(texts(source=["short"] * 59 + ["word " * 70]), METRICS, "en", "source")
    assert [(group.name, group.lines) for group in found.groups] == [("0-9", 59), ("60+", 1)]
    with pytest.raises(DataError, match="source"):
        by_length(texts(), METRICS, "en", "source")


def test_text_without_spaces_is_measured_in_characters() -> None:
    lines = ["我昨天买了一本书。", "他们明天去上海开会，然后坐火车回北京参加另外一个很长的会议。"]
    given = Texts(("a",), (lines,), ("r",), (lines,))
    found = by_length(given, [BleuConfig().build("zh")], "zh", "reference")
    assert found.title.endswith("in characters")
    assert [(group.name, group.lines) for group in found.groups] == [("0-19", 1), ("20-39", 1)]


def test_tags_group_in_the_order_of_their_appearance(tmp_path: Path) -> None:
    file = tmp_path / "tags"
    file.write_text("".join(f"{'news' if i % 3 else 'talks'}\n" for i in range(59)) + " \n")
    found = by_tag(texts(), METRICS, file)
    assert [(group.name, group.lines) for group in found.groups] == [("talks", 20), ("news", 39), ("(no tag)", 1)]


def test_a_file_of_tags_has_a_line_for_each_translation(tmp_path: Path) -> None:
    (tmp_path / "tags").write_text("news\n")
    with pytest.raises(DataError, match="tags has 1 line, a has 60 lines"):
        by_tag(texts(), METRICS, tmp_path / "tags")
