"""Files in, scores and cautions out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nmt.checking import check
from nmt.errors import DataError, RecipeError
from nmt.score.config import ScoreConfig, named
from nmt.score.evaluate import Result, evaluate
from nmt.score.report import line, output, result_as_json, rows, table


def write(folder: Path, **files: str) -> list[str]:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [str(folder / name) for name in files]


def test_only_line_feeds_end_a_line(tmp_path: Path) -> None:
    hyp, ref = write(tmp_path, hyp="one\u2028two\x0bthree four five\r\nlast", ref="one two three four five\nlast\n")
    assert evaluate(hyp, [ref], named(["bleu"]), "en").segments == 2


def test_unequal_files_are_named_with_their_counts(tmp_path: Path) -> None:
    hyp, ref = write(tmp_path, hyp="a\nb\n", ref="a\n")
    with pytest.raises(DataError) as caught:
        evaluate(hyp, [ref], named(["bleu"]), "en")
    assert f"{hyp} has 2 lines, {ref} has 1" in caught.value.problem


def test_a_source_of_another_length_is_an_error(tmp_path: Path) -> None:
    hyp, ref, source = write(tmp_path, hyp="a\n", ref="a\n", source="a\nb\n")
    with pytest.raises(DataError, match="has 1 line, .*source has 2"):
        evaluate(hyp, [ref], named(["bleu"]), "en", source=source)


def test_invalid_bytes_stop_or_are_replaced_and_counted(tmp_path: Path) -> None:
    (tmp_path / "hyp").write_bytes(b"caf\xe9\n")
    (ref,) = write(tmp_path, ref="caf\n")
    with pytest.raises(DataError, match=r"hyp:1: byte 4"):
        evaluate(tmp_path / "hyp", [ref], named(["bleu"]), "en")
    result = evaluate(tmp_path / "hyp", [ref], named(["bleu"]), "en", on_bad_bytes="replace")
    assert any("U+FFFD" in text for text in result.cautions)


def test_cautions_tell_of_blanks_leftovers_and_missing_references(tmp_path: Path) -> None:
    hyp, first, second = write(tmp_path, hyp="a@@ b\n\nc d\n", first="ab\nc\n \n", second="ab\n\n\n")
    cautions = "\n".join(evaluate(hyp, [first, second], named(["bleu"]), "en").cautions)
    assert "@@" in cautions
    assert "empty in 1 of 3 lines" in cautions
    assert "2 blank lines in the references" in cautions
    assert "1 of 3 sentences have only blank references" in cautions


def test_a_byte_order_mark_is_left_out_and_told(tmp_path: Path) -> None:
    marked, plain, ref = write(
        tmp_path, marked="\ufeffThe ship sails.\n", plain="The ship sails.\n", ref="The ship sails.\n"
    )
    found, expected = (evaluate(hyp, [ref], named(["chrf"]), "en") for hyp in (marked, plain))
    assert found.scores == expected.scores and expected.cautions == ()
    assert [text.split(",")[0] for text in found.cautions] == [f"{marked} begins with a byte order mark"]


@pytest.mark.parametrize(("language", "tokenize"), [("", None), ("zh", "13a"), ("en", None)])
def test_chinese_scored_by_spaces_is_remarked_upon(tmp_path: Path, language: str, tokenize: str | None) -> None:
    hyp, ref = write(tmp_path, hyp="我买了书。\n", ref="我买了一本书。\n")
    assert any("13a" in text for text in evaluate(hyp, [ref], named(["bleu"], tokenize), language).cautions)


@pytest.mark.parametrize(("tokenize", "told"), [("none", False), ("intl", False), ("zh", True)])
def test_spaces_split_what_has_been_split_into_words(tmp_path: Path, tokenize: str, told: bool) -> None:
    hyp, ref = write(tmp_path, hyp="本 を 読 む 。\n", ref="本 を 読 んだ 。\n")
    cautions = evaluate(hyp, [ref], named(["bleu"], tokenize), "ja").cautions
    assert any("tokenizer" in text for text in cautions) == told


def test_sentence_scores_come_in_the_order_of_lines_and_metrics(tmp_path: Path) -> None:
    hyp, ref = write(tmp_path, hyp="\nyes\nGo now\n", ref="Hello\nno\nGo now\n")
    result = evaluate(hyp, [ref], named(["bleu", "chrf"]), "en", sentences=True)
    assert list(output(result)) == ["0.00\t0.00", "0.00\t0.00", "100.00\t100.00"]


@pytest.fixture
def result(tmp_path: Path) -> Result:
    hyp, ref = write(tmp_path, hyp="The ship sails at dawn.\n", ref="The ship departs at dawn.\n")
    return evaluate(hyp, [ref], named(["bleu", "chrf++", "ter"]), "en", sentences=True)


def test_a_line_holds_name_value_and_signature(result: Result) -> None:
    assert line(result.scores[0]) == f"BLEU {result.scores[0].value:.2f}  {result.scores[0].signature}"


def test_json_holds_everything_unrounded(result: Result) -> None:
    data = json.loads("\n".join(output(result, as_object=True)))
    assert data == result_as_json(result)
    assert [score["score"] for score in data["scores"]] == [score.value for score in result.scores]
    assert [score["higher_is_better"] for score in data["scores"]] == [True, True, False]
    assert data["segments"] == len(data["sentences"]) == 1
    assert len(data["scores"][0]["precisions"]) == 4


def test_the_table_has_a_row_for_each_set_and_metric(result: Result) -> None:
    cells = rows([{"name": "first", **result_as_json(result)}, {"name": "second", **result_as_json(result)}])
    assert [cell[:2] for cell in cells][:3] == [("first", "BLEU"), ("first", "chrF2++"), ("first", "TER")]
    lines = table(cells)
    assert len(lines) == 6
    assert len({text.index("nrefs") for text in lines}) == 1


def test_two_files_cannot_both_be_stdin() -> None:
    with pytest.raises(DataError, match="stdin"):
        evaluate("-", ["-"], named(["bleu"]), "en")


def test_an_unknown_tokenizer_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(RecipeError) as caught:
        check(ScoreConfig, {"metrics": [{"kind": "bleu", "tokenize": "ja-mecb"}]}, "recipe.toml")
    assert "ja-mecab" in caught.value.hint
