"""nmt translate's options that control what it may write, and models that work together."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from search.models import learn_vocabulary, save_folder, sentences

import nmt as library
from nmt.search.control.request import Request
from nmt.search.translate import Translator

Command = Callable[..., Any]
LINES = sentences(8, 8, seed=51)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("control")
    return save_folder(folder / "model", learn_vocabulary(folder))


@pytest.fixture(scope="module")
def translator(model: Path) -> Translator:
    return library.load(model, "cpu")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


def as_text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ("--min-length 6 --max-length 7", {"min_length": 6, "max_length": 7}),
        ("--min-length-ratio 0.5 --max-length-ratio 0.9", {"min_length_ratio": 0.5, "max_length_ratio": 0.9}),
        ("--no-repeat-ngram 1 --beam 2", {"no_repeat_ngram": 1, "beam": 2}),
        ("--no-repeat-ngram-size 2", {"no_repeat_ngram": 2}),
        ("--repetition-penalty 3", {"repetition_penalty": 3.0}),
        ("--sample --seed 3 --temperature 0.8 --top-k 50 --top-p 0.9", {
            "sample": True, "seed": 3, "temperature": 0.8, "top_k": 50, "top_p": 0.9
        }),
        ("--min-length 0 --no-repeat-ngram 0 --repetition-penalty 1", {}),
    ],
)  # fmt: skip
def test_options_are_settings(
    nmt: Command, model: Path, translator: Translator, text: Path, options: str, settings: dict[str, Any]
) -> None:
    ended = nmt("translate", model, "--device", "cpu", "--input", text, "--quiet", *options.split())
    assert ended.status == 0
    assert ended.out == as_text(translator.translate(LINES, **settings))


def test_prefixes_belong_to_lines(nmt: Command, model: Path, translator: Translator, text: Path) -> None:
    prefixes = ["bal", "", "kor dem", "", "", "gom", "", "x"]
    (text.parent / "prefix").write_text(as_text(prefixes), encoding="utf-8")
    ended = nmt("translate", model, "--input", text, "--prefix", text.parent / "prefix", "--quiet")
    expected = [Request(line, prefix=prefix) for line, prefix in zip(LINES, prefixes, strict=True)]
    assert ended.out == as_text(translator.translate(expected))


@pytest.mark.parametrize("streams", [{"prefix"}, {"prefix", "input"}], ids=len)
def test_prefixes_and_their_lines_may_come_from_pipes(
    nmt: Command, model: Path, text: Path, pipe: Callable[[str], Path], streams: set[str]
) -> None:
    (text.parent / "prefix").write_text("bal\n\nkor dem\n\n\ngom\n\nx\n")
    files = {"input": text, "prefix": text.parent / "prefix"}
    ended = []
    for piped in (set(), streams):
        given = {name: pipe(path.read_text()) if name in piped else path for name, path in files.items()}
        ended.append(nmt("translate", model, *(part for name, path in given.items() for part in (f"--{name}", path))))
    assert ended[0].status == 0 and ended[1] == ended[0]


@pytest.mark.parametrize("count", [7, 9])
def test_prefixes_of_another_number_in_a_pipe_leave_no_output(
    nmt: Command, model: Path, text: Path, pipe: Callable[[str], Path], count: int
) -> None:
    out = text.parent / "out"
    ended = nmt("translate", model, "--input", text, "--prefix", pipe("\n" * count), "--output", out)
    assert ended.status == 1 and f":{min(count, 8) + 1}: " in ended.err
    assert not out.exists()


def test_stdin_is_read_for_one_thing(nmt: Command, model: Path) -> None:
    for name in ("--prefix", "--glossary"):
        ended = nmt("translate", model, name, "-")
        assert ended.status == 2 and f"only one of --input and {name} can be stdin" in ended.err


@pytest.mark.parametrize("count", [7, 9])
def test_prefixes_of_another_number_stop_everything(nmt: Command, model: Path, text: Path, count: int) -> None:
    (text.parent / "prefix").write_text("\n" * count)
    ended = nmt("translate", model, "--input", text, "--prefix", text.parent / "prefix")
    assert (ended.status, ended.out) == (1, "")
    assert f":{min(count, 8) + 1}: " in ended.err


def test_phrases_terms_and_protected_spans(nmt: Command, model: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("bal {0} kor\ndem 12\nACME gom\n")
    (tmp_path / "terms").write_text("bal\tZürich\n")
    options = [
        "--glossary",
        tmp_path / "terms",
        "--require",
        "kor",
        "--forbid",
        "dem",
        "--protect",
        "placeholder,number",
    ]
    ended = nmt("translate", model, "--input", tmp_path / "in", *options, "--keep", "ACME")
    assert ended.status == 0
    assert "in the translation" not in ended.err
    lines = ended.out.splitlines()
    assert all("kor" in line and "dem" not in line.split() for line in lines)
    assert all(
        word in line for line, words in zip(lines, (["Zürich", "{0}"], ["12"], ["ACME"]), strict=True) for word in words
    )


def test_what_is_lacking_is_told_with_its_line(nmt: Command, model: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("bal\nbal 12\n")
    ended = nmt("translate", model, "--input", tmp_path / "in", "--protect", "all", "--sample", "--max-length", "1")
    assert "warning: line 2: in the translation, '12' stands there never, in the source once" in ended.err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--length-penalty gnmt", "--length-penalty gnmt: a length penalty is"),
        ("--beam 2 --n-best 3", "--n-best 3 is more than --beam 2,"),
        ("--beam 3 --beam-groups 2", "--beam 3 is not a multiple of --beam-groups 2"),
        ("--batch-size 0", "--batch-size 0: input should be"),
        ("--min-length 6 --max-length 3", "--min-length 6 is more than --max-length 3"),
    ],
)
def test_settings_that_do_not_fit_are_told_as_options(
    nmt: Command, model: Path, text: Path, options: str, problem: str
) -> None:
    ended = nmt("translate", model, "--input", text, *options.split())
    assert (ended.status, ended.out) == (1, "")
    assert ended.err.startswith(f"error: {problem}") and "recipe" not in ended.err


def test_what_is_null_in_a_jsonl_line_is_not_asked_for(nmt: Command, model: Path, tmp_path: Path) -> None:
    lines = [
        {"source": LINES[0]},
        {"source": LINES[0], "control": None},
        {"source": LINES[0], "control": {"min_length": None, "prefix": None, "require": None, "tag": None}},
        {"source": LINES[0], "control": {"max_length": 1}},
    ]
    call = ["translate", model, "--input", tmp_path / "in", "--input-format", "jsonl"]
    (tmp_path / "in").write_text(as_text(list(map(json.dumps, lines))))
    found = [json.loads(line)["translation"] for line in nmt(*call).out.splitlines()]
    assert found[0] == found[1] == found[2] != found[3]
    for control, problem in (
        ({"min_lenth": None}, "in:1: control: min_lenth is not a known key"),
        ({"top_p": 3}, "in:1: control: top_p = 3: input should be"),
    ):
        (tmp_path / "in").write_text(json.dumps({"source": "bal", "control": control}))
        ended = nmt(*call)
        assert ended.status == 1 and problem in ended.err and "recipe" not in ended.err


def test_half_surrogate_pairs_of_json_are_replaced_counted_and_told(nmt: Command, model: Path, tmp_path: Path) -> None:
    line = r'{"source": "bal \ud800 kor", "a": {"\udfff": ["\ud83d\ude00", "\ud83d"]}, "control": {"prefix": "\ud800"}}'
    (tmp_path / "in").write_text(line + "\n")
    ended = nmt("translate", model, "--input", tmp_path / "in", "--input-format", "jsonl")
    assert "warning: 4 halves of surrogate pairs in JSON stood alone; U+FFFD is in their place" in ended.err
    found = json.loads(ended.out)
    assert (found["source"], found["a"]) == ("bal \ufffd kor", {"\ufffd": ["\U0001f600", "\ufffd"]})
    (tmp_path / "in").write_text(r'{"source": "bal \ud83d\ude00"}')
    assert "surrogate" not in nmt("translate", model, "--input", tmp_path / "in", "--input-format", "jsonl").err


def test_a_jsonl_line_has_its_own_control(nmt: Command, model: Path, translator: Translator, tmp_path: Path) -> None:
    control = {"prefix": "kor", "require": ["gom"], "forbid": ["dem"], "min_length": 6}
    rows = [{"source": "bal"}, {"source": "bal", "control": control}]
    (tmp_path / "in").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ended = nmt("translate", model, "--input", tmp_path / "in", "--input-format", "jsonl", "--alignment")
    free, asked = map(json.loads, ended.out.splitlines())
    assert free["translation"] == translator.translate(["bal"])[0]
    assert asked["control"] == control
    assert asked["translation"].startswith("kor")
    assert "gom" in asked["translation"]
    assert len(asked["tokens"]) >= 6
    links = [tuple(map(int, link.split("-"))) for link in asked["alignment"].split()]
    assert {j for _, j in links} == set(range(len(asked["translation"].split())))


@pytest.mark.parametrize(
    ("options", "control", "told"),
    [
        ("--max-length 3", {"min_length": 9}, "min_length = 9 is more than max_length = 3"),
        ("--min-length 9", {"max_length": "3"}, "min_length = 9 is more than max_length = 3"),
        ("--max-length-ratio 0.5", {"min_length_ratio": 2}, "min_length_ratio = 2 is more than max_length_ratio = 0.5"),
    ],
)
def test_a_line_s_own_minimum_and_the_maximum_of_all_may_contradict_each_other(
    nmt: Command, model: Path, tmp_path: Path, options: str, control: dict[str, Any], told: str
) -> None:
    rows = [{"source": LINES[0]}, {"source": LINES[0], "control": control}]
    (tmp_path / "in").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ended = nmt("translate", model, "--input", tmp_path / "in", "--input-format", "jsonl", *options.split())
    assert ended.status == 0
    assert f"warning: line 2: {told}: the maximum holds" in ended.err
    most = 3 if "ratio" not in options else len(LINES[0]) // 2
    assert len(json.loads(ended.out.splitlines()[1])["tokens"]) <= most


@pytest.mark.parametrize("text", ["bal", "bal \\u0041"])
@pytest.mark.parametrize("depth", [199, 200, 600, 950, 3000, 100_000])
def test_json_that_is_nested_too_deep_is_named_by_its_line(
    nmt: Command, model: Path, tmp_path: Path, depth: int, text: str
) -> None:
    """What can be read can be written, though that happens deeper within the program."""
    nested = "[" * depth + "]" * depth
    (tmp_path / "in").write_text(f'{{"source":"{text}","x":{nested}}}')
    ended = nmt("translate", model, "--input", tmp_path / "in", "--input-format", "jsonl")
    if depth < 200:
        assert f'"x": {nested}' in ended.out
    else:
        assert f"error: {tmp_path / 'in'}:1: is nested deeper than 200 levels" in ended.err


@pytest.mark.parametrize(
    ("control", "words"),
    [
        (["x"], "not an object"),
        ({"prefx": "x"}, "prefix"),
        ({"prefix": 3}, "prefix is not a text"),
        ({"require": "x"}, "not a list"),
        ({"min_length": -1}, "min_length"),
        ({"min_length": 3, "max_length": 2}, "min_length"),
    ],
)
def test_a_bad_control_is_named_before_anything_is_written(
    nmt: Command, model: Path, tmp_path: Path, control: object, words: str
) -> None:
    rows = [{"source": "bal"}, {"source": "bal", "control": control}]
    (tmp_path / "in").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ended = nmt("translate", model, "--input", tmp_path / "in", "--input-format", "jsonl")
    assert (ended.status, ended.out) == (1, "")
    assert f"{tmp_path / 'in'}:2: " in ended.err
    assert words in ended.err


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (["--min-length", "4", "--max-length", "3"], 1, "--max-length 3"),
        (["--sample", "--top-p", "1.5"], 1, "--top-p 1.5"),
        (["--top-k", "3", "--seed", "2"], 2, "--top-k, --seed"),
        (["--protect", "uri"], 1, "url"),
        (["--keep", "["], 1, "regular expression"),
        (["--glossary", "no/file"], 1, "no/file"),
        (["--prefix", "no/file"], 1, "no/file"),
        (["--mbr", "chrf"], 2, "--n-best"),
        (["--require", ""], 2, "--require ''"),
        (["--forbid", "bal", "--forbid", " \u3000"], 2, "--forbid"),
        (["--buffer", "0"], 1, "--buffer 0"),
        (["--batch-tokens", "0"], 1, "--batch-tokens 0"),
        (["--length-penalty", ""], 1, "--length-penalty"),
    ],
)
def test_unfit_options_leave_stdout_empty(
    nmt: Command, model: Path, text: Path, options: list[str], status: int, words: str
) -> None:
    ended = nmt("translate", model, "--input", text, *options)
    assert (ended.status, ended.out) == (status, "")
    assert words in ended.err


def test_alignment_stands_behind_each_form(nmt: Command, model: Path, text: Path, translator: Translator) -> None:
    found = list(translator.stream(LINES, n_best=2, alignment=True))
    shown = [[" ".join(f"{i}-{j}" for i, j in c.alignment or ()) for c in t.alternatives] for t in found]
    ended = nmt("translate", model, "--input", text, "--alignment", "--quiet")
    assert ended.out == as_text([f"{t.text} ||| {rows[0]}" for t, rows in zip(found, shown, strict=True)])
    ended = nmt("translate", model, "--input", text, "--alignment", "--n-best", "2", "--quiet")
    assert [row.split(" ||| ")[4] for row in ended.out.splitlines()] == [link for rows in shown for link in rows]
    ended = nmt("translate", model, "--input", text, "--alignment", "--format", "fairseq", "--quiet")
    assert [row.split("\t")[1] for row in ended.out.splitlines() if row[0] == "A"] == [rows[0] for rows in shown]


def test_a_blank_line_has_an_empty_alignment_in_its_place(nmt: Command, model: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("bal kor\n\n \ndem\n", encoding="utf-8")
    ended = nmt("translate", model, "--input", tmp_path / "in", "--alignment", "--quiet")
    rows = [row.split(" ||| ") for row in ended.out.split("\n")[:-1]]
    assert len(rows) == 4 and rows[1] == rows[2] == ["", ""] and rows[0] != ["", ""] != rows[3]


def test_mbr_chooses_among_what_was_found(nmt: Command, model: Path, text: Path, translator: Translator) -> None:
    from nmt.score.mbr import Consensus

    expected = [Consensus()(t).text for t in translator.stream(LINES, n_best=4)]
    assert expected != translator.translate(LINES)
    ended = nmt("translate", model, "--input", text, "--mbr", "chrf", "--n-best", "4", "--quiet")
    assert ended.out == as_text(expected)


def test_models_of_one_vocabulary_work_together(
    nmt: Command, model: Path, text: Path, translator: Translator, tmp_path: Path
) -> None:
    ended = nmt("translate", model, model, "--input", text, "--quiet")
    assert ended.out == as_text(translator.translate(LINES))
    (tmp_path / "words").mkdir()
    other = save_folder(tmp_path / "other", learn_vocabulary(tmp_path / "words", 350))
    ended = nmt("translate", model, other, "--input", text)
    assert (ended.status, ended.out) == (1, "")
    assert "another vocabulary" in ended.err
    assert str(other) in ended.err
