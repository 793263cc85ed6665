"""The search that stays on its device against the one that looks at every step."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from model.recorded import Recorded
from search.models import random_model
from search.tables import BOS, EOS, PAD, UNK
from torch import Tensor

from nmt.model.inference.captured import CapturedTransformer
from nmt.search.beam import search
from nmt.search.hypothesis import Hypothesis
from nmt.search.length import parse_penalty
from nmt.search.resident import Rules, resident_search

PENALTIES = ["none", "gnmt:0.6", "average:1", "average:-0.5", "gnmt:2"]


@cache
def formed(size: int) -> CapturedTransformer:
    """The form of a model of so many tokens: made once, so that searches follow each other in the same memory.

    All that a GPU captures is recorded and replayed.
    """
    form = CapturedTransformer(random_model(size), "float32", rows=12)  # type: ignore[arg-type]
    form.graphs = Recorded()
    return form


def sources(count: int, size: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    keep_BS = torch.arange(9) < torch.randint(1, 10, (count, 1), generator=generator)
    return torch.randint(4, size, (count, 9), generator=generator).masked_fill(~keep_BS, PAD), keep_BS


def resident(form: CapturedTransformer, src: Tensor, keep: Tensor, limits: list[int], rules: Rules) -> Any:
    with torch.inference_mode():
        return resident_search(form, form.encode(src, keep), keep, limits, rules)


def alike(found: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> bool:
    """Whether tokens and ends are the same, and numbers close."""
    assert [[(h.ids, h.finished) for h in each] for each in found] == [
        [(h.ids, h.finished) for h in each] for each in expected
    ]
    for ours, theirs in zip((h for each in found for h in each), (h for each in expected for h in each), strict=True):
        assert (ours.score, ours.log_probability) == pytest.approx((theirs.score, theirs.log_probability), abs=1e-4)
        assert ours.token_log_probabilities == pytest.approx(theirs.token_log_probabilities, abs=1e-4)
    return True


@settings(max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    beam=st.integers(1, 5),
    penalty=st.sampled_from(PENALTIES),
    size=st.sampled_from([9, 30, 640]),  # fewer tokens than candidates; without groups of columns, and with them
    limits=st.lists(st.integers(0, 20), min_size=1, max_size=7),
    patience=st.sampled_from([1, 1, 2, 1000]),
)
def test_it_finds_what_beam_search_finds(
    seed: int, beam: int, penalty: str, size: int, limits: list[int], patience: float
) -> None:
    form, (src, keep) = formed(size), sources(len(limits), size, seed)
    n_best, patience = max(beam // 2, 1), patience if beam > 1 else 1
    rules = Rules(BOS, EOS, (PAD, UNK, BOS), beam, parse_penalty(penalty), n_best, patience)
    with torch.inference_mode():
        expected = search(
            form.step,
            form.start(form.encode(src, keep), keep),
            bos=BOS,
            eos=EOS,
            pad=PAD,
            limits_B=limits,
            beam=beam,
            penalty=rules.penalty,
            n_best=n_best,
            patience=patience,
            banned=[UNK],
        )
    assert alike(resident(form, src, keep, limits, rules), expected)


@pytest.mark.parametrize("beam", [1, 4])
def test_a_batch_gives_each_sentence_what_it_gets_alone_to_the_last_digit(beam: int) -> None:
    form = CapturedTransformer(random_model(192), "bfloat16", rows=20 * beam)  # type: ignore[arg-type]
    src, keep = sources(20, 192, seed=5)
    limits, rules = [5 + i % 7 for i in range(20)], Rules(BOS, EOS, (PAD, UNK, BOS), beam, parse_penalty("gnmt:0.6"))
    together = resident(form, src, keep, limits, rules)
    order = torch.randperm(20, generator=torch.Generator().manual_seed(2))
    shuffled = resident(form, src[order], keep[order], [limits[i] for i in order.tolist()], rules)
    assert shuffled == [together[i] for i in order.tolist()]
    for i in range(0, 20, 3):
        length = int(keep[i].sum())
        assert resident(form, src[i : i + 1, :length], keep[i : i + 1, :length], [limits[i]], rules) == [together[i]]
    assert {h.finished for (h,) in together} == {True, False}
