"""Commands of a model that reads the lines before each line, as typed."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from search.models import learn_vocabulary, save_folder

from nmt.batches.batch import collate
from nmt.checkpoint.load import load_translator
from nmt.search.align import Words, aligned, attention_BTS
from nmt.search.control.request import Request
from nmt.subwords.tags import add_tags
from nmt.subwords.vocabulary import SEPARATOR

Command = Callable[..., Any]
LINES = ["bal kor", "dem", "gom ban", "", "kor dem", "bal", "gom"]
BEFORE = [[], ["bal kor"], ["bal kor", "dem"], [], [], ["kor dem"], ["kor dem", "bal"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of two sentences of context, and one that is its equal but for that."""
    folder = tmp_path_factory.mktemp("context")
    vocabulary = learn_vocabulary(folder)
    add_tags(vocabulary, [SEPARATOR])
    for name, count in (("model", 2), ("plain", 0)):
        path = save_folder(folder / name, vocabulary) / "model.json"
        described = json.loads(path.read_text()) | ({"context_sentences": count} if count else {})
        path.write_text(json.dumps(described))
    (folder / "in").write_text("".join(line + "\n" for line in LINES))
    return folder


@pytest.fixture(scope="module")
def expected(folder: Path) -> list[str]:
    """The translations, each of its line and context alone."""
    translator = load_translator(folder / "model", "cpu")
    given = zip(LINES, BEFORE, strict=True)
    found = [translator.translate([Request(line, context=tuple(before))])[0] for line, before in given]
    plain = load_translator(folder / "plain", "cpu").translate(LINES)
    assert [i for i, (one, other) in enumerate(zip(found, plain, strict=True)) if one != other] == [1, 2, 5, 6]
    return found


@pytest.mark.parametrize("options", [("--buffer", "1"), ("--workers", "2", "--batch-size", "2", "--buffer", "5")])
def test_the_lines_before_are_kept_whatever_is_batched(
    nmt: Command, folder: Path, expected: list[str], options: tuple[str, ...]
) -> None:
    assert nmt("translate", folder / "model", "--input", folder / "in", *options).out.split("\n")[:-1] == expected


@pytest.mark.parametrize("done", [2, 6])
def test_a_job_that_goes_on_knows_the_lines_before(
    nmt: Command, folder: Path, expected: list[str], done: int, tmp_path: Path
) -> None:
    call = ("translate", folder / "model", "--input", folder / "in", "--output", tmp_path / "out", "--resume")
    assert nmt(*call).status == 0
    whole = (tmp_path / "out").read_text()
    (tmp_path / "out").unlink()
    (tmp_path / "out.partial").write_text("".join(whole.splitlines(True)[:done]))
    assert nmt(*call).status == 0
    assert (tmp_path / "out").read_text() == whole == "".join(line + "\n" for line in expected)


def test_json_lines_may_bring_their_context(nmt: Command, folder: Path, expected: list[str], tmp_path: Path) -> None:
    given = [{"source": line, "context": before} for line, before in zip(LINES, BEFORE, strict=True)]
    mixed = [
        given[2],
        {"source": "bal", "context": ["no more", "", "kor dem"]},  # a blank one begins a document
        {"source": "gom"},  # follows the line before and what that had brought
        {"source": "dem", "context": ["older", "old", "", "bal kor"]},
        {"source": "kor dem", "context": []},
        {"source": ""},
        {"source": "bal kor", "context": None},
    ]
    (tmp_path / "in").write_text("".join(json.dumps(one) + "\n" for one in [*reversed(given), *mixed]))
    command = ("translate", folder / "model", "--input-format", "jsonl", "--input", tmp_path / "in")
    out = [json.loads(line) for line in nmt(*command).out.splitlines()]
    again = [expected[i] for i in (2, 5, 6, 1, 4, 3, 0)]
    assert [one["translation"] for one in out] == [*reversed(expected), *again]
    assert [one.get("context") for one in out[:7]] == BEFORE[::-1]


@pytest.mark.parametrize("bad", ['"one"', "[1]"])
def test_context_that_is_no_list_of_texts_is_an_error_before_anything_is_written(
    nmt: Command, folder: Path, bad: str, tmp_path: Path
) -> None:
    (tmp_path / "in").write_text('{"source": "bal"}\n{"source": "bal", "context": ' + bad + "}\n")
    call = ("--input-format", "jsonl", "--input", tmp_path / "in", "--output", tmp_path / "out")
    ended = nmt("translate", folder / "model", *call)
    assert ended.status == 1 and ":2: context is not a list of texts" in ended.err
    assert not (tmp_path / "out").exists()
    plain = nmt("translate", folder / "plain", *call)  # to other models it is a field as any other
    assert plain.status == 0 and json.loads((tmp_path / "out").read_text().splitlines()[1])["context"] == json.loads(
        bad
    )


def test_scores_of_given_translations_are_those_of_translating(
    nmt: Command, folder: Path, expected: list[str], tmp_path: Path
) -> None:
    (tmp_path / "out").write_text("".join(line + "\n" for line in expected))
    options = ("--format", "jsonl", "--scores", "--length-penalty", "none")
    search = nmt("translate", folder / "model", "--input", folder / "in", *options).out.splitlines()
    files = ("--source", folder / "in", "--target", tmp_path / "out")
    given = nmt("rescore", folder / "model", *files, "--format", "jsonl").out.splitlines()
    for one, other in zip(map(json.loads, search), map(json.loads, given), strict=True):
        if one["tokens"] == other["tokens"]:
            assert one["log_probability"] == pytest.approx(other["log_probability"], abs=1e-4)
    plain = nmt("rescore", folder / "plain", *files, "--format", "jsonl").out.splitlines()
    assert [i for i in range(7) if plain[i] != given[i]] == [1, 2, 5, 6]


def test_such_a_model_orders_no_translations_of_others(nmt: Command, folder: Path) -> None:
    call = ("--input", folder / "in", "--n-best", "2", "--rescore-by", folder / "model")
    ended = nmt("translate", folder / "plain", *call)
    assert ended.status == 1 and "a model that reads context cannot order translations" in ended.err


def test_words_are_aligned_in_context(nmt: Command, folder: Path) -> None:
    """As by the attention to a source put together by hand, of which only the sentence's own columns count."""
    translator = load_translator(folder / "model", "cpu")
    read, marks = translator.source_vocabulary, {"bos": 2, "eos": 3, "pad": 0}
    files = ("--source", folder / "in", "--target", folder / "in")
    given = nmt("attention", folder / "model", "--align", *files).out.split("\n")[:-1]
    for line, before, links in zip(LINES, BEFORE, given, strict=True):
        own = read.encode(line)
        lead = [i for text in before for i in (*read.encode(text), read.separator)]
        looked_BTS = attention_BTS(translator.model, collate([[*lead, *own]], [own], **marks))
        words = Words(line, [own], read)
        expected = aligned([looked_BTS[0, : len(own), len(lead) : len(lead) + len(own)]], words, words)
        assert links == " ".join(f"{i}-{j}" for i, j in expected)


@pytest.mark.parametrize("before", [["bal kor"], ["gom", "dem", "bal kor"], ["gom", "", "bal kor"]], ids=len)
def test_attention_is_looked_at_in_context(nmt: Command, folder: Path, before: list[str]) -> None:
    """As the lines of a document are read: two sentences at most, and none from before a blank line."""
    call = [part for text in before for part in ("--context", text)]
    ended = nmt("attention", folder / "model", "dem", *call, "--format", "json", "--output", "-")
    found = json.loads(ended.out)
    translator = load_translator(folder / "model", "cpu")
    read = translator.source_vocabulary
    kept = ["dem", "bal kor"] if len(before) > 2 and before[1] else ["bal kor"]
    pieces = [piece for text in kept for piece in (*read.pieces(text), SEPARATOR)]
    assert found["context"] == kept and found["source_tokens"] == [*pieces, *read.pieces("dem"), "</s>"]
    assert found["target"] == translator.translate([Request("dem", context=tuple(before))])[0]
    words = nmt("attention", folder / "model", "dem", *call, "--format", "json", "--output", "-", "--words")
    assert json.loads(words.out)["source_tokens"] == f" {SEPARATOR} ".join([*kept, "dem </s>"]).split()


def test_context_that_is_of_no_use_is_refused(nmt: Command, folder: Path) -> None:
    ended = nmt("attention", folder / "plain", "dem", "--context", "bal", "--output", "-")
    assert (ended.status, ended.out) == (1, "") and "this model reads no context" in ended.err
    files = ("--source", folder / "in", "--target", folder / "in")
    for kind in ("--align", "--heads"):
        ended = nmt("attention", folder / "model", kind, *files, "--context", "bal")
        assert ended.status == 2 and "--context is for a SENTENCE" in ended.err


def test_a_conversation_is_a_document(
    nmt: Command, folder: Path, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join([*LINES, ":reset", *LINES[:2], ""])))
    ended = nmt("translate", folder / "model", "--interactive")
    assert ended.out.splitlines() == [line for line in [*expected, *expected[:2]] if line]
