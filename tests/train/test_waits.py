"""An update asks a GPU for its numbers once. Here it is computed with tensors that have no numbers to give."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensorMode
from train.toys import PAD, model, optimizer, pairs

from nmt.model.ways import Way
from nmt.train.loss import real_places
from nmt.train.ranks import Ranks
from nmt.train.rules import Rules
from nmt.train.update import learn


class Known:
    """Numbers that were known beforehand, instead of a tensor."""

    def __init__(self, *values: float) -> None:
        self.values = values

    def __int__(self) -> int:
        return int(self.values[0])

    def tolist(self) -> list[float]:
        return list(self.values)


class Told(Ranks):
    """Whose sums are known: they are all that an update may ask for."""

    def __init__(self, *sums: Known) -> None:
        self.left = list(sums)

    def sum(self, values: Tensor) -> Any:
        """The next of them."""
        known = self.left.pop(0)
        assert values.numel() == len(known.values)
        return known


def update(trains: Way, rules: Rules) -> None:
    learner = model(dropout=0.0)
    learner.trains = trains
    batch = pairs().load(pairs().updates(0)[0][0])
    tokens = batch.tokens
    told = Told(Known(tokens), Known(3.0, 2.0, 0.0, 9.0))
    rule = optimizer(learner)
    with FakeTensorMode(allow_non_fake_inputs=True):
        outcome = learn(learner, rule, [batch], rate=0.1, rules=rules, pad=PAD, ranks=told)
    assert not told.left
    assert outcome.finite and (outcome.loss, outcome.norm) == (3.0 / tokens, 9.0)


@pytest.mark.parametrize("rules", [Rules(clip_norm=1.0), Rules(rdrop_alpha=1.0)], ids=["clipped", "two passes"])
def test_an_update_on_the_fused_way_needs_no_number_but_its_sums(rules: Rules) -> None:
    update(Way.FUSED, rules)


@pytest.mark.parametrize("trains", [Way.PACKED, Way.PLAIN])
def test_the_other_ways_ask_how_many_tokens_are_real(trains: Way) -> None:
    with pytest.raises(DynamicOutputShapeException):
        update(trains, Rules())


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=6))
@settings(max_examples=50)
def test_real_places_are_the_same_and_in_the_same_order_whether_their_number_is_told_or_not(
    real: list[list[bool]],
) -> None:
    out_BT = torch.where(torch.tensor(real), 5, PAD)
    assert torch.equal(real_places(out_BT, PAD, int(torch.tensor(real).sum())), real_places(out_BT, PAD))
