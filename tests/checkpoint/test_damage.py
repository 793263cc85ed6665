"""A damaged or altered model folder is refused in one line, whatever the damage."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from nmt.checkpoint import layout
from nmt.checkpoint.header import read_shapes
from nmt.checkpoint.load import load_model
from nmt.checkpoint.save import save_checkpoint
from nmt.errors import ModelError, OutputError, TrainingError
from nmt.files import read_json, sha256, write_json

SHARED = [HealthCheck.function_scoped_fixture]
WEIGHT = "decoder.norm.weight"

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
entries = st.fixed_dictionaries(
    {}, optional={"dtype": st.just("F32") | values, "shape": values, "data_offsets": values}
)


def refused(load: Callable[[Path], object], path: Path) -> ModelError:
    with pytest.raises(ModelError) as problem:
        load(path)
    assert "\n" not in problem.value.problem
    return problem.value


def write_header(path: Path, text: bytes, data: bytes = b"") -> Path:
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def parts(path: Path) -> tuple[dict[str, Any], bytes]:
    """The header and the numbers of a weights file."""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:end]), data[end:]


def describe(folder: Path, **changes: object) -> None:
    write_json(folder / "model.json", {**read_json(folder / "model.json"), **changes})


def tell_digest(folder: Path) -> None:
    describe(folder, weights_sha256=sha256(folder / layout.WEIGHTS))


@pytest.mark.parametrize(
    "text",
    [
        b"[1]",
        b"null",
        b"7",
        b'{"a": 1}',
        b'{"a": {}}',
        b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}',
        b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}}',
        b'{"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}',
        b'{"a": {"dtype": "F32", "shape": [true], "data_offsets": [0, 4]}}',
        b'{"a": {"dtype": "F7", "shape": [1], "data_offsets": [0, 4]}}',
        b'{"a\\nb": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}',
        b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=lambda text: text[:70].decode(),
)
def test_a_header_that_describes_no_tensors_is_damaged(text: bytes, tmp_path: Path) -> None:
    assert "is damaged" in refused(read_shapes, write_header(tmp_path / "w", text, b"\0" * 4)).problem


@given(header=values | st.dictionaries(st.text(max_size=5), entries, max_size=2))
@settings(max_examples=150, suppress_health_check=SHARED)
def test_any_json_as_a_header_is_read_or_refused(header: object, tmp_path: Path) -> None:
    path = write_header(tmp_path / "w", json.dumps(header).encode())
    try:
        shapes = read_shapes(path)
    except ModelError as error:
        assert "\n" not in error.problem
    else:
        assert all(0 in shape for shape in shapes.values())  # there are no numbers in the file


def test_metadata_beside_the_tensors_is_allowed(model: Path) -> None:
    tensors = load_file(model / layout.WEIGHTS)
    save_file(tensors, model / layout.WEIGHTS, metadata={"format": "pt"})
    tell_digest(model)
    load_model(model)


@given(st.data())
@settings(max_examples=40, suppress_health_check=SHARED)
def test_one_changed_byte_anywhere_is_refused(model: Path, data: st.DataObject) -> None:
    path = model / layout.WEIGHTS
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    place = data.draw(st.integers(0, header - 1) | st.integers(header, len(whole) - 1))
    byte = data.draw(st.integers(1, 255)) ^ whole[place]
    try:
        path.write_bytes(whole[:place] + bytes([byte]) + whole[place + 1 :])
        refused(load_model, model)
    finally:
        path.write_bytes(whole)


@given(st.data())
@settings(max_examples=40, suppress_health_check=SHARED)
def test_one_changed_byte_of_a_header_without_a_digest_is_nothing_worse_than_refused(
    model: Path, data: st.DataObject
) -> None:
    describe(model, weights_sha256=None)
    path = model / layout.WEIGHTS
    whole = path.read_bytes()
    place = data.draw(st.integers(0, 7 + int.from_bytes(whole[:8], "little")))
    byte = data.draw(st.integers(1, 255)) ^ whole[place]
    try:
        path.write_bytes(whole[:place] + bytes([byte]) + whole[place + 1 :])
        load_model(model)
    except ModelError as error:
        assert "\n" not in error.problem
    finally:
        path.write_bytes(whole)


@pytest.mark.parametrize("value", [torch.inf, -torch.inf, torch.nan])
def test_a_weight_that_is_not_finite_is_refused(value: float, model: Path) -> None:
    tensors = load_file(model / layout.WEIGHTS)
    tensors[WEIGHT][3] = value
    save_file(tensors, model / layout.WEIGHTS)
    tell_digest(model)
    assert f"{WEIGHT} holds a value that is not finite" in refused(load_model, model).problem


@pytest.mark.parametrize("kind", ["I32", "U32"])
def test_numbers_of_another_type_are_refused(kind: str, model: Path) -> None:
    header, numbers = parts(model / layout.WEIGHTS)
    header[WEIGHT]["dtype"] = kind
    write_header(model / layout.WEIGHTS, json.dumps(header).encode(), numbers)
    tell_digest(model)
    assert f"{WEIGHT} holds {kind}; the model needs F32" in refused(load_model, model).problem


@pytest.mark.parametrize("field", ["max_source_tokens", "source_size", "target_size"])
@pytest.mark.parametrize("value", [-1, 0])
def test_sizes_that_nothing_has_are_refused(field: str, value: int, model: Path) -> None:
    describe(model, **{field: value})
    assert f"model.json: {field}" in refused(load_model, model).problem


@pytest.mark.parametrize("field", ["feedforward", "width", "encoder_layers", "decoder_layers"])
@pytest.mark.parametrize("value", [99_999_998, 10**30])
def test_sizes_that_no_memory_holds_are_compared_before_memory_is_taken(field: str, value: int, model: Path) -> None:
    describe(model, model={**read_json(model / "model.json")["model"], field: value})
    assert "model.json" in refused(load_model, model).problem


def test_a_folder_from_before_digests_loads(model: Path) -> None:
    description = read_json(model / "model.json")
    assert description.pop("weights_sha256") == sha256(model / layout.WEIGHTS)
    write_json(model / "model.json", description)
    assert load_model(model)[0].weights_sha256 is None


def keep(checkpoints: Path, model: Path, optimizer: dict[str, torch.Tensor]) -> None:
    description, loaded = load_model(model)
    files = {"vocabulary.model": model / "vocabulary.model"}
    save_checkpoint(checkpoints, 7, loaded, description, files, optimizer=optimizer, rng={}, state={})


def test_a_checkpoint_that_cannot_be_saved_is_named_as_it_would_have_been(model: Path, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    room = sum(path.stat().st_size for path in model.iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        with pytest.raises(OutputError) as problem:
            keep(tmp_path / "run", model, {"moment": torch.zeros(room)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    place = tmp_path / "run" / "step-00000007" / "resume" / "optimizer.safetensors"
    assert problem.value.problem == f"{place}: cannot be written: File too large"
    with pytest.raises(TrainingError) as wrong:
        keep(tmp_path / "run", model, {"moment": torch.full((2,), torch.nan)})
    assert wrong.value.problem.startswith(f"{place}: moment holds")
    assert not list((tmp_path / "run").iterdir())
