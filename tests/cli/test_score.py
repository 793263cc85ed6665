"""`nmt score` and `nmt download`, as typed."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import sacrebleu
from nmt.cli import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    texts = {
        "hyp": "The ship sails at dawn.\nIt snowed all night.\n",
        "r1": "The ship departs at dawn.\nIt was snowing all night.\n",
        "r2": "At dawn the ship sails.\nIt snowed all night long.\n",
        "r2blank": "At dawn the ship sails.\n\n",
        "short": "The ship departs at dawn.\n",
        "empty": "\n\n",
        "zh": "我昨天买了一本新书。\n他们明天去北京开会。\n",
        "zhref": "我昨天买了一本书。\n他们明天去上海开会。\n",
        "pieces": "The sh@@ ip sa@@ ils .\nIt sno@@ wed .\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def feed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize(
    "arguments",
    [
        ["r1", "--input", "hyp"],
        ["--ref", "r1", "--hyp", "hyp"],
        ["--hypothesis", "hyp", "--reference", "r1"],
        ["r1", "-i", "hyp"],
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_line_for_each_metric_with_name_value_and_signature(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", *arguments]) == 0
    value = sacrebleu.corpus_bleu(
        ["The ship sails at dawn.", "It snowed all night."],
        [["The ship departs at dawn.", "It was snowing all night."]],
    ).score
    signature = f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{sacrebleu.__version__}"
    out, err = capsys.readouterr()
    assert out == f"BLEU {value:.2f}  {signature}\n"
    assert err == ""


def test_the_hypothesis_comes_from_stdin_by_default(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", "r1", "--hyp", "hyp"]) == 0
    named = capsys.readouterr().out
    feed(monkeypatch, (folder / "hyp").read_bytes())
    assert main(["score", "r1"]) == 0
    assert capsys.readouterr().out == named


@pytest.mark.usefixtures("folder")
def test_metrics_are_printed_in_the_order_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "r1", "-i", "hyp", "--metric", "ter", "--metric", "chrf++", "-m", "chrf", "-m", "bleu"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == ["TER", "chrF2++", "chrF2", "BLEU"]


@pytest.mark.parametrize("references", [["r1", "r2"], ["r2", "r1"], ["--ref", "r1", "r2"], ["r1", "--ref", "r2"]])
@pytest.mark.usefixtures("folder")
def test_several_references_in_any_order_give_one_value(
    references: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["score", "r1", "r2", "--hyp", "hyp"])
    expected = capsys.readouterr().out
    assert "nrefs:2" in expected
    assert main(["score", *references, "--hyp", "hyp"]) == 0
    assert capsys.readouterr().out == expected


@pytest.mark.usefixtures("folder")
def test_a_missing_second_reference_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "r1", "r2blank", "--hyp", "hyp"]) == 0
    out, err = capsys.readouterr()
    assert "nrefs:var" in out
    assert "1 blank line" in err


@pytest.mark.usefixtures("folder")
def test_the_language_chooses_the_tokenizer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "zhref", "--hyp", "zh", "--language", "zh"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("BLEU 62.02  ") and "tok:zh" in out
    assert err == ""
    assert main(["score", "zhref", "--hyp", "zh", "--language", "zh", "--tokenize", "13a"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("BLEU 0.00  ") and err.startswith("warning: ")
    assert main(["score", "zhref", "--hyp", "zh"]) == 0
    assert "look like zh" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_unequal_counts_give_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "short", "--hyp", "hyp"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "error: hyp has 2 lines, short has 1" in err and "hint: " in err
    for references in (["r1", "short"], ["short", "r1"]):
        assert main(["score", "--ref", *references, "--hyp", "hyp"]) == 1
        out, err = capsys.readouterr()
        assert out == "" and "hyp has 2 lines, short has 1" in err


@pytest.mark.usefixtures("folder")
def test_empty_output_scores_zero(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "r1", "--hyp", "empty"]) == 0
    assert capsys.readouterr().out.startswith("BLEU 0.00  ")


@pytest.mark.usefixtures("folder")
def test_leftover_pieces_are_remarked_upon_unless_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "r1", "--hyp", "pieces"]) == 0
    assert "@@" in capsys.readouterr().err
    assert main(["score", "r1", "--hyp", "pieces", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_the_same_text_without_pieces_and_tokens_is_perfect_and_raises_no_warning(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pieces = (folder / "pieces").read_text(encoding="utf-8")
    (folder / "text").write_text(pieces.replace("@@ ", "").replace(" .", "."), encoding="utf-8")
    (folder / "ref").write_text("The ship sails.\nIt snowed.\n", encoding="utf-8")
    assert main(["score", "--ref", "ref", "--hyp", "text"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("BLEU 100.00  ") and err == ""
    assert main(["score", "--ref", "ref", "--hyp", "pieces"]) == 0
    out, err = capsys.readouterr()
    assert float(out.split()[1]) < 30 and "spaced full stop" in err and "@@" in err


@pytest.mark.usefixtures("folder")
def test_lower_case_is_another_score_with_another_signature(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "lower").write_text((folder / "r1").read_text(encoding="utf-8").lower(), encoding="utf-8")
    for option, case in (([], "case:mixed"), (["--lowercase"], "case:lc")):
        assert main(["score", "--ref", "r1", "--hyp", "lower", *option]) == 0
        out = capsys.readouterr().out
        assert case in out and (out.split()[1] == "100.00") is (case == "case:lc")


def test_sentences_without_a_common_word_score_zero_and_short_ones_may_be_perfect(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "h").write_text("\nnothing\nCome here\n", encoding="utf-8")
    (folder / "r").write_text("Something\nall\nCome here\n", encoding="utf-8")
    assert main(["score", "r", "--hyp", "h", "--sentence", "-q"]) == 0
    assert capsys.readouterr().out == "0.00\n0.00\n100.00\n"


@pytest.mark.usefixtures("folder")
def test_sentence_scores_are_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "r1", "--hyp", "hyp", "--sentence", "-m", "bleu", "-m", "chrf"]) == 0
    out, err = capsys.readouterr()
    assert [len(line.split("\t")) for line in out.splitlines()] == [2, 2]
    assert "nrefs:1" in err


@pytest.mark.usefixtures("folder")
def test_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "r1", "--hyp", "pieces", "--json", "--lowercase"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert "case:lc" in data["scores"][0]["signature"]
    assert data["references"] == ["r1"] and data["warnings"]


@pytest.mark.usefixtures("folder")
def test_a_source_shows_lines_whose_numbers_changed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "source").write_text("Das Schiff 3 fährt.\nEs schneite.\n", encoding="utf-8")
    assert main(["score", "r1", "--hyp", "hyp", "--source", "source"]) == 0
    assert "1 line of 2 holds other numbers than its source: 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [[], ["r1", "--tokenize", "13b"], ["r1", "--metric", "blue"], ["r1", "--no-such-option"]]
)
@pytest.mark.usefixtures("folder")
def test_wrong_usage_is_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "--hyp", "hyp", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ")


@pytest.mark.usefixtures("folder")
def test_a_language_that_is_no_code_is_refused_and_never_scored_as_another(capsys: pytest.CaptureFixture[str]) -> None:
    for name, code in (("chinese", "zh"), ("Japanese", "ja"), ("jp", "ja"), ("cn", "zh"), ("klingon", "pt-BR")):
        assert main(["score", "zhref", "--hyp", "zh", "--language", name]) == 2
        out, err = capsys.readouterr()
        assert out == "" and f"'{name}' is no language code" in err and code in err
    for name in ("zh-TW", "zho_Hans", "deu", "pt_BR.UTF-8", ""):
        assert main(["score", "zhref", "--hyp", "zh", "--language", name]) == 0
        capsys.readouterr()


@pytest.mark.usefixtures("folder")
def test_a_missing_file_is_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "nowhere", "--hyp", "hyp"]) == 1
    assert "nowhere" in capsys.readouterr().err


def test_download_says_what_is_still_missing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "recipe.toml").write_text(
        """
name = "mine"
[languages]
source = "en"
target = "de"
[[data.train]]
source = "hyp"
target = "nowhere.de"
[data.valid]
source = "hyp"
target = "r1"
[train]
steps = 1
curves = false
""",
        encoding="utf-8",
    )
    assert main(["download", "recipe.toml"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "nowhere.de" in err and "hyp" not in err
