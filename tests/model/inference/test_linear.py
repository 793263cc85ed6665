"""Packed linear layers against the formula, and rows against their neighbours."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from nmt.model.inference.hardware import fastest, multiplies_int8
from nmt.model.inference.linear import Int8, NarrowSums, Packed, Plain, Sums, WideSums, filled_up, pack

native = pytest.mark.skipif(not multiplies_int8(), reason="needs a processor made for 8-bit products")


def drawn(rows: int, inputs: int, outputs: int, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = (rows, inputs), (outputs, inputs), (outputs,)
    x_RI, weight_OI, bias_O = (torch.randn(shape, generator=generator) for shape in shapes)
    return x_RI, weight_OI, bias_O


@pytest.mark.parametrize(("arithmetic", "near"), [("float32", 1e-4), ("bfloat16", 0.3), ("int8", 0.3)])
@pytest.mark.parametrize("shape", [(3,), (1, 5), (2, 9, 7)])
def test_every_arithmetic_is_close_to_the_product(arithmetic: str, near: float, shape: tuple[int, ...]) -> None:
    x_RI, weight_OI, bias_O = drawn(torch.Size(shape).numel(), 24, 40)
    for bias in (bias_O, None):
        y = pack(weight_OI, bias, arithmetic)(x_RI.view(*shape, 24))  # type: ignore[arg-type]
        assert y.dtype == torch.float32
        assert_close(y, torch.nn.functional.linear(x_RI, weight_OI, bias).view(*shape, 40), atol=near, rtol=0.02)


@pytest.mark.parametrize("kind", [Plain, Packed])
def test_what_becomes_of_the_weights_later_changes_nothing(kind: type) -> None:
    x_RI, weight_OI, bias_O = drawn(5, 8, 6)
    expected = torch.nn.functional.linear(x_RI, weight_OI, bias_O)
    linear = pack(weight_OI, bias_O, "float32")
    weight_OI.zero_()
    bias_O.zero_()
    assert_close(linear(x_RI), expected)


@settings(max_examples=30)
@given(
    rows=st.integers(1, 300),
    inputs=st.integers(1, 40),
    outputs=st.integers(1, 40),
    arithmetic=st.sampled_from(["float32", "bfloat16", "int8"]),
    data=st.data(),
)
def test_a_row_does_not_know_its_neighbours(
    rows: int, inputs: int, outputs: int, arithmetic: str, data: st.DataObject
) -> None:
    x_RI, weight_OI, bias_O = drawn(rows, inputs, outputs)
    linear = pack(weight_OI, bias_O, arithmetic)  # type: ignore[arg-type]
    start = data.draw(st.integers(0, rows - 1))
    stop = data.draw(st.integers(start + 1, rows))
    assert_close(linear(x_RI[start:stop]), linear(x_RI)[start:stop], atol=1e-5, rtol=1e-5)


@native
@pytest.mark.parametrize("kind", [NarrowSums, WideSums])
@pytest.mark.parametrize("rows", [1, 4, 16, 17, 130, 300])
def test_the_processor_sums_whole_numbers_exactly(kind: type[Sums], rows: int) -> None:
    generator = torch.Generator().manual_seed(rows)
    whole_RI, whole_OI = (torch.randint(-127, 128, (n, 512), generator=generator) for n in (rows, 2100))
    whole_RI[0], whole_OI[0] = 127, -127  # the largest sum there is
    scale_O = torch.rand(2100, generator=generator)
    expected = (whole_RI @ whole_OI.T).float() * scale_O
    assert torch.equal(kind(whole_OI.float(), scale_O)(whole_RI.float()), expected)
    assert torch.equal(Sums(whole_OI.float(), scale_O)(whole_RI.float()), expected)


def test_rows_of_zeros_and_outputs_of_zeros_stay_so() -> None:
    linear = Int8(torch.zeros(3, 4), None)
    assert torch.equal(linear(torch.randn(2, 4)), torch.zeros(2, 3))
    assert torch.equal(Int8(torch.ones(3, 4), None)(torch.zeros(2, 4)), torch.zeros(2, 3))


@given(rows=st.integers(1, 700))
def test_few_numbers_of_rows_occur_and_none_is_much_larger(rows: int) -> None:
    filled = len(filled_up(torch.zeros(rows, 1), torch.float32))
    assert rows <= filled < rows + (1 if rows <= 16 else 16 if rows <= 256 else 64)


def test_the_fastest_arithmetic_is_one_that_the_processor_has() -> None:
    assert fastest(torch.device("cpu")) == ("int8" if multiplies_int8() else "float32")
