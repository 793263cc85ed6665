"""nmt translate: results on stdout only, line for line, in every format."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from nmt.cli import main
from search.models import WORDS, learn_vocabulary, save_folder, sentences

import nmt
from nmt.search.translate import Translator

Captured = pytest.CaptureFixture[bytes]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("translate")
    return save_folder(folder / "model", learn_vocabulary(folder))


@pytest.fixture(scope="module")
def translator(model: Path) -> Translator:
    return nmt.load(model, "cpu")


@pytest.fixture
def translate(model: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: Captured) -> Run:
    return Run(["translate", str(model), "--device", "cpu"], monkeypatch, capsysbinary)


class Run:
    """Runs a command with given stdin; keeps what it wrote."""

    def __init__(self, start: list[str], monkeypatch: pytest.MonkeyPatch, captured: Captured) -> None:
        self.start, self.monkeypatch, self.captured = start, monkeypatch, captured
        self.error = ""

    def __call__(self, *arguments: str | Path, stdin: bytes = b"", status: int = 0) -> bytes:
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        assert main([*self.start, *map(str, arguments)]) == status
        captured = self.captured.readouterr()
        self.error = captured.err.decode()
        return captured.out


def as_bytes(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def test_every_line_has_its_translation_in_its_place(translate: Run, translator: Translator) -> None:
    lines = ["bal kor", "", " \u3000", *sentences(30), "", ""]
    assert translate(stdin=as_bytes(lines)) == as_bytes(translator.translate(lines))


@pytest.mark.parametrize(
    ("stdin", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"bal kor", ["bal kor"]),
        (b"bal kor\r\ndem\r\n", ["bal kor", "dem"]),
        (
            b"bal\xe2\x80\xa8kor\ndem\xc2\x85gom\nban\x0bbar\x0c\x1cbel\n",
            ["bal\u2028kor", "dem\x85gom", "ban\vbar\f\x1cbel"],
        ),
        (b"bal\x00kor dem\ngom\n", ["bal kor dem", "gom"]),
    ],
)
def test_only_a_line_feed_ends_a_line(translate: Run, translator: Translator, stdin: bytes, lines: list[str]) -> None:
    out = translate(stdin=stdin)
    assert out == as_bytes(translator.translate(lines))
    assert len(out.decode().splitlines()) == len(lines)


@pytest.mark.parametrize("buffer", ["1", "3", "10", "1k"])
def test_the_buffer_changes_nothing(translate: Run, translator: Translator, buffer: str) -> None:
    lines = [" ".join((WORDS[n // 48], WORDS[n % 48], WORDS[7 * n % 48])) for n in range(100)]
    assert translate("--buffer", buffer, stdin=as_bytes(lines)) == as_bytes(translator.translate(lines))


def test_files_are_read_and_written_by_their_suffix(translate: Run, translator: Translator, tmp_path: Path) -> None:
    lines = sentences(5)
    with gzip.open(tmp_path / "in.gz", "wb") as stream:
        stream.write(as_bytes(lines))
    assert translate("--input", tmp_path / "in.gz", "--output", tmp_path / "out.gz") == b""
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()) == as_bytes(translator.translate(lines))


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (["--beam", "1"], {"beam": 1}),
        (["--beam-size", "2", "--lenpen", "1"], {"beam": 2, "length_penalty": "average:1"}),
        (["--beam_size", "2", "--normalize", "-0.5"], {"beam": 2, "length_penalty": "average:-0.5"}),
        (["--length-penalty", "none", "--max-extra-tokens", "0"], {"length_penalty": "none", "max_extra_tokens": 0}),
        (["--batch-tokens", "1k", "--batch-size", "3", "--max-tokens", "20"], {}),
    ],
)
def test_options_are_settings_by_other_toolkits_names_too(
    translate: Run, translator: Translator, options: list[str], settings: dict[str, object]
) -> None:
    lines = sentences(10)
    assert translate(*options, stdin=as_bytes(lines)) == as_bytes(translator.translate(lines, **settings))


def test_scores_stand_before_the_text(translate: Run, translator: Translator) -> None:
    lines = ["bal kor", ""]
    expected = [f"{t.score:.6f}\t{t.text}" for t in translator.stream(lines)]
    assert translate("--scores", stdin=as_bytes(lines)) == as_bytes(expected)


@pytest.mark.parametrize("flag", ["--n-best", "--nbest", "--n_best"])
def test_n_best_lines_have_number_text_features_and_score(translate: Run, translator: Translator, flag: str) -> None:
    lines = ["bal kor", "dem gom"]
    rows = [row.split(" ||| ") for row in translate(flag, "3", stdin=as_bytes(lines)).decode().splitlines()]
    found = [(t.number, c) for t in translator.stream(lines, n_best=3) for c in t.alternatives]
    assert [(int(row[0]), row[1], float(row[3])) for row in rows] == [
        (number, c.text, pytest.approx(c.score, abs=1e-5)) for number, c in found
    ]
    assert all(row[2].startswith("LogP= -") for row in rows)


def test_jsonl_objects_hold_what_is_known(translate: Run, translator: Translator) -> None:
    lines = ["bal \u2028kor", "", "gom dem"]
    out = translate("--format", "jsonl", "--n-best", "2", "--scores", stdin=as_bytes(lines)).decode()
    assert len(out.splitlines()) == 3
    for row, t in zip(map(json.loads, out.splitlines()), translator.stream(lines, n_best=2), strict=True):
        assert (row["id"], row["source"], row["translation"]) == (t.number, t.source, t.text)
        assert row["score"] == pytest.approx(t.score, abs=1e-5)
        assert row["tokens"] == list(t.best.tokens)
        assert row["token_log_probabilities"] == pytest.approx(t.best.token_log_probabilities, abs=1e-5)
        assert [a["translation"] for a in row.get("alternatives", [row])] == [c.text for c in t.alternatives]


def test_other_fields_of_jsonl_pass_through(translate: Run, translator: Translator) -> None:
    stdin = b'{"id": "x9", "source": "bal kor", "tags": [1, {"a": null}]}\n\n{"source": "gom\\ud800", "score": 1}\n'
    rows = list(map(json.loads, translate("--input-format", "jsonl", stdin=stdin).splitlines()))
    assert [row["id"] for row in rows] == ["x9", 1, 2]
    assert rows[0]["tags"] == [1, {"a": None}]
    assert [row["translation"] for row in rows] == translator.translate(["bal kor", "", "gom\ufffd"])
    assert rows[2]["score"] < 0


@pytest.mark.parametrize(
    "line",
    [b"bal kor", b'{"text": "bal"}', b'{"source": 3}', b'["bal"]', b'{"source": "bal", "x": 1e400}']
    + [b'{"source": "bal", "x": NaN}'],
)
def test_what_is_no_record_is_named_with_its_line(translate: Run, tmp_path: Path, line: bytes) -> None:
    (tmp_path / "in").write_bytes(b'{"source": "bal"}\n' + line + b"\n")
    assert translate("--input", tmp_path / "in", "--input-format", "jsonl", status=1) == b""
    assert f"{tmp_path / 'in'}:2: " in translate.error


def test_fairseq_lines_can_be_grepped(translate: Run, translator: Translator) -> None:
    lines = ["bal kor", "", "gom"]
    rows = [row.split("\t") for row in translate("--format", "fairseq", stdin=as_bytes(lines)).decode().splitlines()]
    found = list(translator.stream(lines))
    assert [row[0] for row in rows] == [f"{letter}-{n}" for n in range(3) for letter in "SHDP"]
    assert [row[1] for row in rows if row[0][0] == "S"] == [" ".join(t.source_tokens) for t in found]
    assert [row[2] for row in rows if row[0][0] == "H"] == [" ".join(t.best.tokens) for t in found]
    assert [row[2] for row in rows if row[0][0] == "D"] == [t.text for t in found]
    assert [len(row[1].split()) for row in rows if row[0][0] == "P"] == [
        len(t.best.token_log_probabilities) for t in found
    ]


def test_a_long_line_is_named_and_its_neighbours_are_as_without_it(translate: Run, translator: Translator) -> None:
    out = translate(stdin=as_bytes(["bal kor", "dem " * 500, "gom"])).decode().split("\n")
    assert [out[0], out[2], out[3]] == [*translator.translate(["bal kor", "gom"]), ""]
    (warning,) = [row for row in translate.error.splitlines() if "limit 64" in row]
    assert warning.startswith("warning: line 2: 501 tokens, limit 64 with the end mark: split into 8 parts")


def test_cut_translations_are_counted_and_named(translate: Run, translator: Translator) -> None:
    lines = sentences(6)
    cut = [t.number + 1 for t in translator.stream(lines) if not t.best.finished]
    assert 1 < len(cut) < 6
    translate(stdin=as_bytes(lines))
    named = f"{len(cut)} translations were cut at the limit of length: lines {', '.join(map(str, cut))}"
    assert f"warning: {named}" in translate.error


def test_quiet_leaves_stderr_empty(translate: Run) -> None:
    translate("--quiet", stdin=as_bytes(["dem " * 200, *sentences(6)]))
    assert translate.error == ""


def test_stderr_that_is_no_terminal_gets_plain_lines(translate: Run) -> None:
    translate(stdin=as_bytes(sentences(6)))
    assert not {"\r", "\x1b"} & set(translate.error)


def test_invalid_bytes_of_a_file_stop_everything_before_any_output(translate: Run, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"bal\n caf\xe9 kor\ndem\n")
    assert translate("--input", tmp_path / "in", status=1) == b""
    assert f"{tmp_path / 'in'}:2: byte 5 (0xE9) is not valid UTF-8" in translate.error
    translate("--input", tmp_path / "in", "--output", tmp_path / "out", status=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_invalid_bytes_of_a_stream_stop_everything_of_their_buffer(translate: Run) -> None:
    assert translate(stdin=b"bal\n caf\xe9 kor\ndem\n", status=1) == b""
    assert "stdin:2: byte 5 (0xE9) is not valid UTF-8" in translate.error


def test_invalid_bytes_can_be_replaced_and_are_counted(translate: Run, translator: Translator) -> None:
    out = translate("--on-bad-bytes", "replace", stdin=b"bal\n caf\xe9 kor\ndem\n")
    assert out == as_bytes(translator.translate(["bal", " caf\ufffd kor", "dem"]))
    assert "1 byte was not valid UTF-8" in translate.error


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--n-best", "9"], 1, "beam"),
        (["--n-best", "2", "--format", "text"], 2, "nbest"),
        (["--length-penalty", "0.6"], 1, "gnmt:A"),
        (["--lenpen", "much"], 1, "gnmt:A"),
        (["--lenpen", "1", "--length-penalty", "none"], 2, "--lenpen"),
        (["--beam", "0"], 2, "beam"),
        (["--input", "no/such/file"], 1, "no/such/file"),
    ],
)
def test_wrong_usage_and_unfit_values_leave_stdout_empty(
    translate: Run, arguments: list[str], status: int, words: str
) -> None:
    assert translate(*arguments, stdin=b"bal\n", status=status) == b""
    assert words in translate.error
    assert len(translate.error.splitlines()) == 2


def test_a_missing_model_writes_nothing_to_stdout(monkeypatch: pytest.MonkeyPatch, capsysbinary: Captured) -> None:
    run = Run(["translate", "no/model"], monkeypatch, capsysbinary)
    assert run(stdin=b"bal\n", status=1) == b""
    assert "no/model" in run.error


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full disk")
def test_a_full_disk_is_an_error_with_its_place(translate: Run, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"bal\n")
    translate("--input", tmp_path / "in", "--output", "/dev/full", status=1)
    assert "/dev/full: cannot be written" in translate.error


def start(model: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "nmt", "translate", str(model), "--threads", "1", "--device", "cpu", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env={**os.environ, "LC_ALL": "C"})


def test_a_line_is_answered_before_the_next_is_asked(model: Path, translator: Translator) -> None:
    expected = [f"{text}\n".encode() for text in translator.translate(["bäl kor", "", "gom"])]
    with start(model, "--quiet") as process:
        assert process.stdin and process.stdout and process.stderr
        for line, answer in zip(["bäl kor", "", "gom"], expected, strict=True):
            process.stdin.write(f"{line}\n".encode())
            process.stdin.flush()
            assert process.stdout.readline() == answer
        process.stdin.close()
        assert process.stdout.read() == b""
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_a_closed_reader_ends_it_quietly_while_the_input_is_still_open(model: Path) -> None:
    with start(model, "--quiet") as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(as_bytes(sentences(3)))
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write(as_bytes(sentences(2)))
        process.stdin.flush()
        assert process.wait(60) in {0, 141}
        assert process.stderr.read() == b""
