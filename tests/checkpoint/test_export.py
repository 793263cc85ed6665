"""nmt checkpoint export: what is written, replaced and refused, whatever the format."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal, get_args, get_type_hints

import pytest
from nmt.cli import main
from nmt.cli.checkpoint import export as command

from nmt.checkpoint import export as exporting
from nmt.checkpoint.export import FORMATS, export
from nmt.checkpoint.load import load_translator
from nmt.errors import NmtError, OutputError

LINES = ["abcd efgh", "", "hgfe dcba abcd"]


def done(*arguments: object) -> list[object]:
    return list(export(*arguments))  # type: ignore[arg-type]


def test_the_command_offers_every_format() -> None:
    hints = get_type_hints(command)
    assert hints["to"] == Literal[tuple(FORMATS)]
    assert {name for to in FORMATS if to != "ctranslate2" for name in exporting._format(to).QUANTIZATIONS} == {"none"}
    assert get_args(hints["quantization"]) == ("none", "int8", "float16")


def test_a_checkpoint_is_exported_without_what_only_training_needs(model: Path, tmp_path: Path, capsys) -> None:
    (model / "resume").mkdir()
    (model / "resume" / "state.json").write_text("{}")
    output = tmp_path / "out" / "exported"
    assert main(["checkpoint", "export", str(model), str(output), "--to", "safetensors"]) == 0
    assert f"exported {model} to {output}" in capsys.readouterr().err
    names = {"README.md", "export.json", "model.json", "model.safetensors", "vocabulary.model"}
    assert {path.name for path in output.iterdir()} == names
    assert load_translator(output, "cpu").translate(LINES) == load_translator(model, "cpu").translate(LINES)


def test_an_export_replaces_an_export_and_nothing_else(model: Path, tmp_path: Path) -> None:
    output = tmp_path / "exported"
    output.mkdir()
    done(model, output, "safetensors")
    (output / "leftover").write_text("")
    done(model, output, "huggingface")
    assert (output / "config.json").is_file() and not (output / "leftover").exists()
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    for taken in (other, model, other / "thesis.txt"):
        with pytest.raises(OutputError, match="is there and is not an export"):
            done(model, taken, "huggingface")
    assert (other / "thesis.txt").read_text() == "mine"


def test_a_length_penalty_that_others_lack_is_told(model: Path, tmp_path: Path) -> None:
    cautions = [str(event) for event in done(model, tmp_path / "out", "huggingface") if "Caution" in str(event)]
    assert len(cautions) == 1 and "gnmt:0.6 is not known outside; average:0.6" in cautions[0]
    assert not [event for event in done(model, tmp_path / "same", "safetensors") if "Caution" in str(event)]


def test_a_missing_package_is_named_with_its_extra(model: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, FORMATS["ctranslate2"], raising=False)
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    monkeypatch.setitem(sys.modules, "ctranslate2.specs", None)
    with pytest.raises(NmtError, match="needs the package ctranslate2") as problem:
        done(model, tmp_path / "out", "ctranslate2")
    assert problem.value.hint == 'pip install "nmt[ctranslate2]"'


def test_quantization_of_a_format_without_is_refused(model: Path, tmp_path: Path, capsys) -> None:
    arguments = ["checkpoint", "export", str(model), str(tmp_path / "out"), "--to", "huggingface"]
    assert main([*arguments, "--quantization", "int8"]) == 2
    assert "goes with --to ctranslate2 only" in capsys.readouterr().err
    with pytest.raises(NmtError, match="huggingface has none only"):
        done(model, tmp_path / "out", "huggingface", "int8")
    with pytest.raises(NmtError, match="format 'onnx' is none of ctranslate2, huggingface, safetensors"):
        done(model, tmp_path / "out", "onnx")
