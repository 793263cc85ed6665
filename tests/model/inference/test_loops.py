"""The compiled loops against torch's own functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from nmt.model.inference import loops
from nmt.model.inference.products import Sums, product


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


@settings(deadline=None)
@given(x=st.floats(-200, 0, width=32))
def test_powers_of_e_are_the_libraries(x: float) -> None:
    assert float(loops.power_of_e(np.float32(x))) == pytest.approx(math.exp(x), rel=3e-7, abs=1.7e-38)


@settings(deadline=None, max_examples=30)
@given(rows=st.integers(1, 20), inputs=st.integers(2, 40), outputs=st.integers(1, 40), whole=st.booleans())
def test_what_a_product_gives_is_read_as_the_product(rows: int, inputs: int, outputs: int, whole: bool) -> None:
    x_RI, weight_OI, bias_O = draw(rows, inputs), draw(outputs, inputs, seed=1), draw(outputs, seed=2)
    multiply = product(weight_OI, bias_O, "int8" if whole else "float32")
    z = multiply.rows(rows)
    loops.add_and_norm(x_RI.numpy(), *(None,) * 8, 0.0, z.z_RI, z.scale_R)
    y_RO = torch.empty(rows, outputs)
    sums = Sums(*(part[:rows] if i < 2 and part is not None else part for i, part in enumerate(multiply(z))))
    loops.scale(*sums, y_RO.numpy())
    expected = torch.nn.functional.linear(x_RI, weight_OI, bias_O)
    near = 1e-4 if not whole else 0.02 * float(x_RI.abs().max() * weight_OI.abs().max()) * inputs**0.5 + 1e-4
    assert_close(y_RO, expected, atol=near, rtol=1e-4)
    assert_close(multiply.scaled(z, rows), y_RO, atol=0, rtol=0)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("before", [False, True])
def test_a_joint_adds_and_normalizes(after: bool, before: bool) -> None:
    x_RD, y_RD, norms = draw(7, 24), draw(7, 24, seed=1), draw(4, 24, seed=2)
    expected = x_RD + y_RD
    if after:
        expected = torch.nn.functional.layer_norm(expected, (24,), norms[0], norms[1], 1e-6)
    result = torch.nn.functional.layer_norm(expected, (24,), norms[2], norms[3], 1e-6) if before else expected
    z_RD = torch.empty(7, 24)
    first = norms[:2].numpy() if after else (None, None)
    second = norms[2:].numpy() if before else (None, None)
    loops.add_and_norm(x_RD.numpy(), y_RD.numpy(), None, None, None, *first, *second, 1e-6, z_RD.numpy(), None)
    assert_close(x_RD, expected)
    assert_close(z_RD, result)


def test_whole_numbers_use_the_whole_range_of_a_row() -> None:
    x_RD = draw(5, 24) * torch.tensor([1e-3, 1, 1e3, 0, 1])[:, None]
    z_RD, scale_R = np.empty((5, 24), np.int8), np.empty(5, np.float32)
    loops.add_and_norm(x_RD.numpy(), *(None,) * 8, 0.0, z_RD, scale_R)
    assert (np.abs(z_RD).max(1) == [127, 127, 127, 0, 127]).all()
    error_RD = np.abs(z_RD * scale_R[:, None] - x_RD.numpy())
    assert (error_RD <= scale_R[:, None] * 0.501).all()


def test_encoder_attention_is_torchs_for_every_sentence() -> None:
    lengths, heads = [5, 1, 9], 2
    y_NO = draw(15, 48)
    z_ND = np.empty((15, 16), np.float32)
    begin_S = np.cumsum([0, *lengths[:-1]])
    loops.attend_within(y_NO.numpy(), None, None, None, heads, begin_S, np.array(lengths), z_ND, None)
    for begin, length in zip(begin_S, lengths, strict=True):
        q, k, v = (x.view(length, heads, 8).transpose(0, 1) for x in y_NO[begin : begin + length].split(16, 1))
        expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=1.0).transpose(0, 1).flatten(1)
        assert_close(torch.from_numpy(z_ND[begin : begin + length]), expected)


def test_a_row_is_the_same_to_the_last_digit_beside_any_others() -> None:
    x_RD, y_RD, norms = draw(33, 40), draw(33, 40, seed=1), draw(2, 40, seed=2).numpy()

    def normed(some: slice) -> np.ndarray:  # type: ignore[type-arg]
        z_RD = np.empty((len(x_RD[some]), 40), np.float32)
        x = x_RD[some].clone().numpy()
        loops.add_and_norm(x, y_RD[some].numpy(), None, None, None, None, None, *norms, 1e-6, z_RD, None)
        return z_RD

    together = normed(slice(0, 33))
    for some in (slice(0, 1), slice(4, 9), slice(32, 33)):
        assert (normed(some) == together[some]).all()
