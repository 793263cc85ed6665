"""nmt translate --resume: stopped anywhere and called again, the output is that of an unbroken job."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from search.models import learn_vocabulary, save_folder, sentences

Command = Callable[..., Any]
LINES = [*sentences(9, 6, seed=91), "", "bal ||| S-3\tkor", *sentences(3, 6, seed=92)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("resume")
    return save_folder(folder / "model", learn_vocabulary(folder))


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "in"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


FORMS = [[], ["--format", "jsonl"], ["--n-best", "3"], ["--format", "fairseq", "--n-best", "2", "--alignment"]]


@pytest.mark.parametrize("options", FORMS, ids=lambda options: "-".join(options).strip("-") or "text")
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1))
def test_what_was_written_is_kept_and_the_rest_added(
    nmt: Command, model: Path, text: Path, options: list[str], share: float
) -> None:
    folder = text.parent
    for path in folder.glob("out*"):
        path.unlink()
    call = ["translate", model, "--input", text, "--quiet", *options, "--output"]
    assert nmt(*call, folder / "whole").status == 0
    whole = (folder / "whole").read_bytes()
    assert nmt(*call, folder / "out", "--resume").status == 0
    assert (folder / "out").read_bytes() == whole
    (folder / "out").unlink()
    (folder / "out.partial").write_bytes(whole[: round(share * len(whole))])  # a job that was killed
    assert nmt(*call, folder / "out", "--resume").status == 0
    assert (folder / "out").read_bytes() == whole
    assert not (folder / "out.partial").exists()


def test_the_same_call_again_finds_nothing_to_do(nmt: Command, model: Path, text: Path) -> None:
    call = ["translate", model, "--input", text, "--output", text.parent / "out.gz", "--resume"]
    nmt(*call)
    before = (text.parent / "out.gz").stat().st_mtime_ns
    ended = nmt(*call, "--batch-tokens", "50", "--threads", "1")
    assert (ended.status, ended.out) == (0, "")
    assert "whole already" in ended.err
    assert (text.parent / "out.gz").stat().st_mtime_ns == before
    assert gzip.decompress((text.parent / "out.gz").read_bytes()).count(b"\n") == len(LINES)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--beam", "2"], "something else: --beam was not given, and is 2 now"),
        (["--n-best", "2"], "--n-best was 1, and is 2 now"),
        (["--markup", "--lenpen", "1"], "--length-penalty was not given, and is average:1 now; --markup was not given"),
        (["--prefix", "in.txt"], "--prefix was not given, and is given now"),
        (["--forbid", "bal", "--forbid", "kor"], "--forbid was not given, and is bal, kor now"),
    ],
)
def test_other_settings_are_refused_and_named(
    nmt: Command, model: Path, text: Path, change: list[str], words: str
) -> None:
    call = ["translate", model, "--input", text, "--output", text.parent / "out", "--resume"]
    nmt(*call)
    (text.parent / "out").rename(text.parent / "out.partial")
    ended = nmt(*call, *(text if word == "in.txt" else word for word in change))
    assert ended.status == 1
    assert words in " ".join(ended.err.split())
    assert (text.parent / "out.partial").exists()


NEUTRAL = (
    "--beam-groups 1 --patience 1 --coverage-penalty 0 --min-length 0 --min-length-ratio 0 --no-repeat-ngram 0 "
    "--repetition-penalty 1 --n-best 1 --input-format text --on-bad-bytes error --format text "
    "--beam 4 --length-penalty gnmt:0.6 --max-extra-tokens 5 --max-source-tokens 64 --precision float32"  # the model's
)


def test_a_job_goes_on_that_knew_nothing_of_options_which_change_nothing(nmt: Command, model: Path, text: Path) -> None:
    """In both directions: not given, given at its neutral value, unknown when the job was begun, forgotten since."""
    out, beside = text.parent / "out", text.parent / "out.resume.json"
    call = ["translate", model, "--input", text, "--output", out, "--resume"]
    nmt(*call)
    whole, record = out.read_bytes(), json.loads(beside.read_text())
    asked = {name: record[name] for name in ("nmt", "models", "input", "form")}
    of_old = {"of_old": None, "and_older": False, "oldest": []}
    for known, more in ((record, NEUTRAL), (asked, ""), (asked | of_old, NEUTRAL)):
        beside.write_text(json.dumps(known))
        ended = nmt(*call, *more.split())
        assert ended.status == 0 and "whole already" in ended.err
    assert out.read_bytes() == whole
    beside.write_text(json.dumps(asked | {"of_old": 3}))
    ended = nmt(*call)
    assert ended.status == 1 and "of_old was 3, and is not given now" in ended.err
    beside.write_text(json.dumps(asked | {"min_length": 3}))
    assert "--min-length was 3, and is 0 now" in nmt(*call, "--min-length", "0").err


def test_another_input_or_an_output_of_unknown_origin_is_refused(nmt: Command, model: Path, text: Path) -> None:
    out = text.parent / "out"
    call = ["translate", model, "--input", text, "--output", out, "--resume"]
    out.write_text("bal\n")
    ended = nmt(*call)
    assert ended.status == 1
    assert "no out.resume.json" in ended.err
    assert out.read_text() == "bal\n"
    out.unlink()
    nmt(*call)
    out.rename(out.with_name("out.partial"))
    text.write_text("bal\n")
    ended = nmt(*call)
    assert ended.status == 1
    assert "was begun with something else: --input holds something else\n" in ended.err


@pytest.mark.parametrize("option", ["--input", "--prefix", "--glossary"])
def test_what_can_be_read_only_once_is_refused(
    nmt: Command, model: Path, text: Path, pipe: Callable[[str], Path], option: str
) -> None:
    given = {"--input": text, option: pipe("\n")}
    call = (part for pair in given.items() for part in pair)
    ended = nmt("translate", model, *call, "--output", text.parent / "out", "--resume")
    assert ended.status == 2 and f"{option} /dev/fd/" in ended.err and "Traceback" not in ended.err
    assert not list(text.parent.glob("out*"))


def test_more_lines_than_the_input_has_are_refused(nmt: Command, model: Path, text: Path) -> None:
    out = text.parent / "out"
    call = ["translate", model, "--input", text, "--output", out, "--resume"]
    nmt(*call)
    (text.parent / "out.partial").write_bytes(out.read_bytes() + b"more\n")
    out.unlink()
    ended = nmt(*call)
    assert ended.status == 1
    assert f"holds {len(LINES) + 1} lines; the input has {len(LINES)}" in ended.err


@pytest.mark.slow
def test_a_killed_job_goes_on(model: Path, tmp_path: Path, nmt: Command) -> None:
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in sentences(3000, 8, seed=5)))
    call = ["translate", str(model), "--input", str(tmp_path / "in"), "--beam", "1", "--buffer", "50", "--output"]
    command = [sys.executable, "-m", "nmt", *call, str(tmp_path / "out"), "--resume", "--threads", "1"]
    with subprocess.Popen(command, env=os.environ | {"LC_ALL": "C"}) as process:
        partial = tmp_path / "out.partial"
        while not partial.exists() or partial.stat().st_size < 2000:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    assert not (tmp_path / "out").exists()
    assert "beam" in json.loads((tmp_path / "out.resume.json").read_text())
    assert nmt(*call, tmp_path / "out", "--resume").status == 0
    assert nmt(*call, tmp_path / "whole").status == 0
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()
