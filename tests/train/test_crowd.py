"""A process that shares its processors says so once, and one that has them to itself says nothing."""

from __future__ import annotations

import pytest

from nmt.train.crowd import SECONDS, SKIPPED, UPDATES, Crowd, told_of_share, usable


@pytest.mark.parametrize(
    ("seconds", "used", "threads", "share"),
    [(10, 10, 1, ""), (10, 7, 1, ""), (10, 5, 1, "50%"), (10, 19, 2, ""), (10, 10, 2, "50%"), (10, 2, 2, "10%")],
)
def test_less_processor_time_than_threads_could_use_is_told(
    seconds: float, used: float, threads: int, share: str
) -> None:
    told = told_of_share(seconds, used, threads)
    assert told.startswith(f"training gets {share} of the processor time") if share else told == ""
    assert ("too small" in told) == bool(share and threads > 1)


@pytest.mark.parametrize("rate", [0.125, 5.0])
def test_it_is_told_once_after_updates_and_seconds_enough(rate: float) -> None:
    """Of the time behind the first updates only, whatever those took."""
    now, used = [0.0], [100.0]
    crowd, told = Crowd(1, lambda: now[0], lambda: used[0]), list[tuple[int, str]]()
    for update in range(1, 200):
        slow = update <= SKIPPED
        now[0] += 50 if slow else rate
        used[0] += 50 if slow else rate / 4
        told.append((update, crowd.after_update()))
    ((update, text),) = [(update, text) for update, text in told if text]
    assert text.startswith("training gets 25%")
    assert update == SKIPPED + max(UPDATES, round(SECONDS / rate))


def test_time_of_validation_and_saving_is_not_looked_at() -> None:
    now, used = [0.0], [100.0]
    crowd = Crowd(1, lambda: now[0], lambda: used[0])
    for _ in range(SKIPPED + UPDATES):
        now[0], used[0] = now[0] + 60, used[0] + 1  # a slow disk
        crowd.pass_over()
        now[0], used[0] = now[0] + 5, used[0] + 5
        assert crowd.after_update() == ""
    assert crowd.done


def test_no_more_threads_count_than_processors_may_be_used() -> None:
    assert usable(1) == 1 and 1 <= usable(10_000) < 10_000
