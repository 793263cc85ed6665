"""Learning rates at the points that their formulas name."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter

from nmt.train.config import PaperScheduleConfig, ScheduleConfig
from nmt.train.schedule import constant, cosine, linear, paper


@pytest.mark.parametrize(("width", "peak"), [(512, 6.99e-4), (1024, 4.94e-4)])
def test_the_papers_schedule_peaks_at_its_last_warmup_update(width: int, peak: float) -> None:
    rate = PaperScheduleConfig().build(width, None)
    assert rate(4000) == pytest.approx(peak, rel=1e-3)
    assert max(range(1, 20000), key=rate) == 4000
    assert rate(1) == pytest.approx(width**-0.5 * 4000**-1.5)
    assert rate(16000) == pytest.approx(rate(4000) / 2)


def test_the_papers_rate_scales_with_its_factor() -> None:
    assert paper(64, 10, factor=2)(7) == 2 * paper(64, 10)(7)


@pytest.mark.parametrize("shape", [linear, cosine])
def test_falling_rates_rise_peak_and_end_at_the_floor(shape) -> None:
    rate = shape(peak=1.0, floor=0.1, warmup=10, steps=110)
    assert [rate(5), rate(10), rate(60), rate(110), rate(500)] == pytest.approx([0.5, 1.0, 0.55, 0.1, 0.1])


def test_a_warmup_longer_than_the_training_only_rises() -> None:
    rate = linear(peak=1.0, floor=0.0, warmup=10, steps=5)
    assert [rate(n) for n in (1, 5, 10)] == pytest.approx([0.1, 0.5, 1.0])


def test_a_constant_rate_is_constant_after_its_warmup() -> None:
    assert [constant(2.0, 4)(n) for n in (1, 2, 4, 900)] == [0.5, 1.0, 2.0, 2.0]
    assert constant(2.0, 0)(1) == 2.0


@pytest.mark.parametrize("kind", ["paper", "linear", "cosine", "constant"])
def test_every_kind_is_positive_from_the_first_update_on(kind: str) -> None:
    rate = TypeAdapter(ScheduleConfig).validate_python({"kind": kind}).build(512, 1000)
    assert all(rate(n) > 0 for n in range(1, 1000))
