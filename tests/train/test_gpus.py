"""GPUs by name."""

from __future__ import annotations

import pytest

from nmt.errors import NmtError
from nmt.train.gpus import GPUS, named, of_device


@pytest.mark.parametrize("typed", ["rtx4090", "RTX 4090", "rtx-4090", "Rtx_4090"])
def test_a_gpu_is_found_in_any_spelling(typed: str) -> None:
    assert named(typed).name == "RTX 4090"


def test_an_unknown_gpu_is_told_with_those_that_are_known_and_the_nearest() -> None:
    with pytest.raises(NmtError, match="gpu = 'h10' is none of k40, .*, b200") as raised:
        named("h10")
    assert raised.value.hint.startswith("did you mean ")
    with pytest.raises(NmtError) as raised:
        named("xyzzy!")
    assert raised.value.hint == ""


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("Tesla P100-PCIE-16GB", "P100"),
        ("NVIDIA A10G", None),
    ],
)
def test_a_device_is_the_longest_known_name_in_what_it_calls_itself(told: str, name: str | None) -> None:
    found = of_device(told)
    assert (found.name if found else None) == name


def test_bfloat16_is_counted_where_there_are_instructions_for_it() -> None:
    assert {GPUS[name].arithmetic("auto") for name in ("p100", "v100", "t4")} == {"float32"}
    assert GPUS["p100"].arithmetic("bfloat16") == "float32" and GPUS["p100"].tflops("float32") == 9.5
    assert [GPUS["a100"].arithmetic(asked) for asked in ("auto", "float32")] == ["bfloat16", "float32"]
    assert all(gpu.bfloat16 is None or gpu.bfloat16 > gpu.float32 for gpu in GPUS.values())
