"""Position encodings against the formulas of their papers."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from model.cases import POSITIONS, name
from torch import Tensor
from torch.testing import assert_close

from nmt.errors import DataError
from nmt.model import initial
from nmt.model.position.core import Position
from nmt.model.position.learned import Learned
from nmt.model.position.rotary import Rotary
from nmt.model.position.sinusoidal import Sinusoidal, codes


@pytest.mark.parametrize("width", [2, 16, 512])
@pytest.mark.parametrize("pos", [0, 1, 2, 17, 511, 512, 5000])
def test_codes_are_the_papers_sines_and_cosines(width: int, pos: int) -> None:
    code_D = Sinusoidal(width).embed(torch.zeros(1, 1, width), start=pos)[0, 0]
    for i in range(width // 2):
        angle = pos / 10000 ** (2 * i / width)
        assert code_D[2 * i] == pytest.approx(math.sin(angle), abs=1e-6)
        assert code_D[2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-6)


def test_codes_have_known_values() -> None:
    expected = [[0, 1, 0, 1], [0.841471, 0.540302, 0.0099998, 0.99995], [0.909297, -0.416147, 0.0199987, 0.9998]]
    assert_close(codes(3, 4), torch.tensor(expected), rtol=0, atol=1e-6)


@pytest.mark.parametrize("k", [1, 3, 50])
def test_moving_on_by_k_places_is_one_fixed_rotation(k: int) -> None:
    width, length = 64, 200
    table_TD = codes(length + k, width)
    frequency_F = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    cos, sin = (k * frequency_F).cos().float(), (k * frequency_F).sin().float()
    even, odd = table_TD[:length, 0::2], table_TD[:length, 1::2]
    assert_close(table_TD[k:, 0::2], even * cos + odd * sin, rtol=0, atol=1e-5)
    assert_close(table_TD[k:, 1::2], odd * cos - even * sin, rtol=0, atol=1e-5)


def test_codes_are_added_from_the_starting_place_on() -> None:
    x_BTD = torch.randn(2, 5, 8)
    assert_close(Sinusoidal(8).embed(x_BTD, start=3), x_BTD + codes(8, 8)[3:])


def test_there_is_no_longest_sentence_with_sinusoidal_and_rotary_positions() -> None:
    short, long = Sinusoidal(8, length=2), Sinusoidal(8, length=100)
    assert torch.equal(short.embed(torch.zeros(1, 60, 8)), long.embed(torch.zeros(1, 60, 8)))
    small, large, x_BHTE = Rotary(8, length=2), Rotary(8, length=100), torch.randn(1, 2, 60, 8)
    assert torch.equal(small.rotate(x_BHTE), large.rotate(x_BHTE))


def test_a_table_that_grew_while_translating_is_an_ordinary_tensor() -> None:
    sinusoidal, rotary = Sinusoidal(8, length=2), Rotary(8, length=2)
    with torch.inference_mode():
        sinusoidal.embed(torch.zeros(1, 60, 8))
        rotary.rotate(torch.zeros(1, 1, 60, 8))
    assert not sinusoidal.table_TD.is_inference()
    assert not rotary.table_2TE.is_inference()


def test_learned_positions_are_added_row_by_row() -> None:
    learned = Learned(8, 10)
    initial.initialize(learned, torch.Generator().manual_seed(1))
    assert_close(learned.embed(torch.ones(2, 3, 8), start=4), 1 + learned.weight[4:7].expand(2, 3, 8))


def test_a_sentence_past_the_last_learned_position_is_refused() -> None:
    learned = Learned(8, 10)
    learned.embed(torch.zeros(1, 10, 8))
    with pytest.raises(DataError, match="11 tokens is longer than the model's 10 learned positions"):
        learned.embed(torch.zeros(1, 1, 8), start=10)


def dot(query_E: Tensor, key_E: Tensor, query_place: int, key_place: int) -> Tensor:
    rotary = Rotary(query_E.size(0)).double()
    q_E = rotary.rotate(query_E[None, None, None], query_place).flatten()
    return q_E @ rotary.rotate(key_E[None, None, None], key_place).flatten()


@settings(max_examples=50)
@given(st.integers(0, 900), st.integers(0, 900), st.integers(0, 900), st.integers(0, 99))
def test_rotary_products_depend_on_distance_only(query: int, key: int, shift: int, seed: int) -> None:
    q_E, k_E = torch.randn(2, 16, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    assert_close(dot(q_E, k_E, query, key), dot(q_E, k_E, query + shift, key + shift), rtol=0, atol=1e-5)


def test_rotary_products_change_with_distance_and_keep_lengths() -> None:
    q_E, k_E = torch.randn(2, 16, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert dot(q_E, k_E, 5, 5) == pytest.approx(float(q_E @ k_E), abs=1e-6)
    assert abs(dot(q_E, k_E, 5, 6) - q_E @ k_E) > 1e-3
    assert dot(q_E, q_E, 7, 7) == pytest.approx(float(q_E @ q_E), abs=1e-6)


def test_rotary_turns_each_pair_by_its_own_frequency() -> None:
    x_BHTE = torch.zeros(1, 1, 3, 4)
    x_BHTE[..., 0], x_BHTE[..., 1] = 1.0, 1.0
    turned_E = Rotary(4).rotate(x_BHTE)[0, 0, 2]
    expected = [math.cos(2), math.cos(2 / 100), math.sin(2), math.sin(2 / 100)]
    assert turned_E.tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("config", POSITIONS, ids=name)
def test_a_stretch_is_encoded_as_within_the_whole(config: Any) -> None:
    position = config.build(16, 8)
    initial.initialize(position, torch.Generator().manual_seed(1))
    x_BTD, x_BHTE = torch.randn(2, 9, 16), torch.randn(2, 2, 9, 8)
    assert_close(position.embed(x_BTD[:, 4:7], start=4), position.embed(x_BTD)[:, 4:7])
    assert_close(position.rotate(x_BHTE[:, :, 4:7], start=4), position.rotate(x_BHTE)[:, :, 4:7])


@pytest.mark.parametrize("config", POSITIONS, ids=name)
def test_tables_are_no_part_of_what_is_saved(config: Any) -> None:
    position = config.build(16, 8)
    assert set(position.state_dict()) == {name for name, _ in position.named_parameters()}


def test_without_a_position_encoding_nothing_changes() -> None:
    x_BTD, x_BHTE = torch.randn(2, 3, 8), torch.randn(2, 2, 3, 4)
    assert Position().embed(x_BTD, 1) is x_BTD
    assert Position().rotate(x_BHTE, 1) is x_BHTE
    assert Position().bias(x_BHTE, 3) is None
