"""nmt encode and nmt decode, as a shell meets them."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from nmt.cli import main

from nmt.checkpoint.layout import Description, digests
from nmt.corpus.config import LanguagesConfig
from nmt.files import write_json
from nmt.model.config import TransformerConfig
from nmt.subwords.config import SubwordConfig
from nmt.subwords.vocabulary import Vocabulary

TEXT = "the train leaves at noon\nder zug fährt um zwölf\n" * 30


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder as these commands need it: description and vocabularies, no weights."""
    folder = tmp_path_factory.mktemp("model")
    text = tmp_path_factory.mktemp("text") / "train"
    files = {}
    for side, size in (("source", 350), ("target", 330)):
        text.write_text(TEXT, encoding="utf-8")
        files[f"{side}.model"] = folder / f"{side}.model"
        list(SubwordConfig(size=size).learn([text], folder / f"{side}.model", 1))
    sizes = {f"{name}_size": len(Vocabulary.load(folder / f"{name}.model")) for name in ("source", "target")}
    description = Description(
        languages=LanguagesConfig(source="en", target="de"),
        model=TransformerConfig(tie_embeddings="target"),
        shared_vocabulary=False,
        vocabulary_sha256=digests(files),
        max_source_tokens=100,
        **sizes,
    )
    write_json(folder / "model.json", description.model_dump(mode="json"))
    return folder


class Stream(io.TextIOWrapper):
    """A standard stream that holds bytes."""

    def __init__(self, data: bytes = b"") -> None:
        super().__init__(io.BytesIO(data), encoding="utf-8")


def pipe(monkeypatch: pytest.MonkeyPatch, arguments: list[str], data: bytes) -> tuple[int, bytes]:
    out = Stream()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", Stream(data))
        patch.setattr(sys, "stdout", out)
        status = main(arguments)
    out.flush()
    return status, out.buffer.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("ids", [[], ["--ids"]], ids=["pieces", "ids"])
def test_decode_undoes_encode(model: Path, monkeypatch: pytest.MonkeyPatch, side: str, ids: list[str]) -> None:
    text = "the  Zug\u2581 <s> 471,11 \u20ac\n\n \n\U0001f600 dem\n".encode()
    options = [str(model), "--side", side, *ids]
    status, pieces = pipe(monkeypatch, ["encode", *options], text)
    assert status == 0 and pieces.count(b"\n") == 4
    status, back = pipe(monkeypatch, ["decode", *options], pieces)
    assert status == 0 and back.decode() == text.decode().replace("\n \n", "\n\n")


def test_encode_takes_the_source_side_and_decode_the_target_side(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, numbers = pipe(monkeypatch, ["encode", str(model), "--ids"], "zwölf\n".encode())
    assert [int(n) for n in numbers.split()] == Vocabulary.load(model / "source.model").encode("zwölf")
    numbers = " ".join(map(str, Vocabulary.load(model / "target.model").encode("zwölf"))).encode()
    assert pipe(monkeypatch, ["decode", str(model), "--ids"], numbers)[1].decode() == "zwölf\n"


def test_files_are_named_by_input_and_output(model: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"noon\r\nat")
    assert main(["encode", str(model), "--input", str(tmp_path / "in"), "--output", str(tmp_path / "pieces")]) == 0
    assert (
        main(["decode", str(model), "--side", "source", "-i", str(tmp_path / "pieces"), "-o", str(tmp_path / "o")]) == 0
    )
    assert (tmp_path / "o").read_bytes() == b"noon\nat\n"


def test_a_problem_is_two_lines_and_status_1(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out = pipe(monkeypatch, ["decode", str(model), "--ids"], b"99999\n")
    assert status == 1 and out == b""
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("error: stdin:1: '99999' is not a number from 0 to ") and lines[1].startswith("hint: ")
    assert len(lines) == 2


def test_a_vocabulary_that_was_swapped_is_refused(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("model.json", "source.model"):
        (tmp_path / name).write_bytes((model / name).read_bytes())
    (tmp_path / "target.model").write_bytes((model / "source.model").read_bytes())
    assert pipe(monkeypatch, ["decode", str(tmp_path)], b"noon\n") == (1, b"")
    assert "target.model: is not the file this model was trained with" in capsys.readouterr().err
    assert pipe(monkeypatch, ["encode", str(tmp_path)], b"noon\n")[0] == 0


def test_a_wrong_side_is_wrong_usage(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["encode", str(model), "--side", "middle"]) == 2
    assert "side" in capsys.readouterr().err


def test_each_line_is_answered_before_the_next_is_given(model: Path) -> None:
    command = [sys.executable, "-m", "nmt", "encode", str(model), "--ids"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        for line in (b"noon\n", b"\n", b"the train\n"):
            process.stdin.write(line)
            process.stdin.flush()
            assert process.stdout.readline().endswith(b"\n")
        process.stdin.close()
        assert process.stdout.read() == b"" and process.wait() == 0


def test_encoding_does_not_load_torch(model: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("noon\n")
    arguments = ["encode", str(model), "--input", str(tmp_path / "in")]
    program = f"import sys; from nmt.cli import main; main({json.dumps(arguments)}); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], stdout=subprocess.DEVNULL, check=False).returncode == 0
