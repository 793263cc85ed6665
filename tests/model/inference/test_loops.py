"""The compiled loops against torch's own functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from nmt.model.inference import loops, tiles
from nmt.model.inference.linear import Arithmetic
from nmt.model.inference.products import known, product, row_scales

NOTHING = np.empty(0, np.float32)


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


@given(x=st.floats(-200, 0, width=32))
def test_powers_of_e_are_the_libraries(x: float) -> None:
    assert float(loops.power_of_e(np.float32(x))) == pytest.approx(math.exp(x), rel=3e-7, abs=1.7e-38)


def multiplied(x_RI: torch.Tensor, layers: int, n: int, arithmetic: Arithmetic, outputs: int) -> torch.Tensor:
    """What the loops make of `x` and the weights of layer `n`, which `weights` draws."""
    weight_NOI, bias_NO = weights(layers, outputs, x_RI.size(1))
    made = product(list(weight_NOI), list(bias_NO), arithmetic)
    z_RI = np.empty(x_RI.shape, made.weight_NPKW.dtype)
    scale_R = row_scales(made, len(x_RI))
    loops.add_and_norm(x_RI.clone().numpy(), *(None,) * 4, *(NOTHING,) * 4, np.float32(0), z_RI, scale_R)
    sums_RO, y_RO = np.empty((len(x_RI), outputs), made.start_NPW.dtype), torch.empty(len(x_RI), outputs)
    tiles.multiply(z_RI, made.weight_NPKW, n, made.start_NPW, sums_RO)
    loops.scale(sums_RO, scale_R, made.column_NO[n], made.bias_NO[n], y_RO.numpy())
    return y_RO


def weights(layers: int, outputs: int, inputs: int) -> tuple[torch.Tensor, torch.Tensor]:
    return draw(layers, outputs, inputs), draw(layers, outputs, seed=2)


KINDS: tuple[Arithmetic, ...] = ("float32", "bfloat16", "int8")


@pytest.mark.parametrize("arithmetic", [kind for kind in KINDS if known(kind)])
@settings(max_examples=20)
@given(rows=st.integers(1, 20), fours=st.integers(1, 10), outputs=st.integers(1, 150), n=st.integers(0, 1))
def test_what_a_product_gives_is_the_product(
    arithmetic: Arithmetic, rows: int, fours: int, outputs: int, n: int
) -> None:
    x_RI = draw(rows, 4 * fours)
    weight_NOI, bias_NO = weights(2, outputs, 4 * fours)
    expected = torch.nn.functional.linear(x_RI, weight_NOI[n], bias_NO[n])
    step = {"float32": 1e-6, "bfloat16": 2**-8, "int8": 1 / 127}[arithmetic]
    near = 2 * step * float(x_RI.abs().max() * weight_NOI.abs().max()) * (4 * fours) ** 0.5 + 1e-5
    assert_close(multiplied(x_RI, 2, n, arithmetic, outputs), expected, atol=near, rtol=1e-5)


@pytest.mark.parametrize("arithmetic", [kind for kind in KINDS if known(kind)])
def test_a_product_is_the_same_to_the_last_digit_beside_any_rows(arithmetic: Arithmetic) -> None:
    x_RI = draw(29, 52)
    together = multiplied(x_RI, 1, 0, arithmetic, 70)
    for some in (slice(0, 1), slice(3, 5), slice(5, 8), slice(8, 12), slice(12, 17), slice(17, 23), slice(5, 29)):
        assert torch.equal(multiplied(x_RI[some], 1, 0, arithmetic, 70), together[some])


@given(x=st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=70))
def test_the_greatest_number_is_found(x: list[float]) -> None:
    assert loops.greatest(np.array(x, np.float32)) == max(x)


@given(x=st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_halves_are_torchs(x: float) -> None:
    expected = torch.tensor(x).bfloat16().view(torch.uint16).item()
    assert loops.half(np.float32(x)) == expected


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("before", [False, True])
def test_a_joint_adds_and_normalizes(after: bool, before: bool) -> None:
    x_RD, y_RD, norms = draw(7, 24), draw(7, 24, seed=1), draw(4, 24, seed=2)
    expected = x_RD + y_RD
    if after:
        expected = torch.nn.functional.layer_norm(expected, (24,), norms[0], norms[1], 1e-6)
    result = torch.nn.functional.layer_norm(expected, (24,), norms[2], norms[3], 1e-6) if before else expected
    z_RD = torch.empty(7, 24)
    first = norms[:2].numpy() if after else (NOTHING, NOTHING)
    second = norms[2:].numpy() if before else (NOTHING, NOTHING)
    loops.add_and_norm(
        x_RD.numpy(), y_RD.numpy(), None, None, None, *first, *second, np.float32(1e-6), z_RD.numpy(), None
    )
    assert_close(x_RD, expected)
    assert_close(z_RD, result)


def test_whole_numbers_use_the_whole_range_of_a_row() -> None:
    x_RD = draw(5, 24) * torch.tensor([1e-3, 1, 1e3, 0, 1])[:, None]
    z_RD, scale_R = np.empty((5, 24), np.int8), np.empty(5, np.float32)
    loops.add_and_norm(x_RD.numpy(), *(None,) * 4, *(NOTHING,) * 4, np.float32(0), z_RD, scale_R)
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
        loops.add_and_norm(
            x, y_RD[some].numpy(), None, None, None, NOTHING, NOTHING, *norms, np.float32(1e-6), z_RD, None
        )
        return z_RD

    together = normed(slice(0, 33))
    for some in (slice(0, 1), slice(4, 9), slice(32, 33)):
        assert (normed(some) == together[some]).all()
