"""Work side by side: everything is done once, errors come through, torch's threads are as they were."""

from __future__ import annotations

import threading

import pytest
import torch

from nmt.search.threads import side_by_side


@pytest.mark.parametrize("workers", [None, 1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_everything_is_done_once(workers: int | None, count: int) -> None:
    done: list[int] = []
    side_by_side(done.append, range(count), workers)
    assert sorted(done) == list(range(count))


def test_several_work_at_a_time_and_without_gradients() -> None:
    meeting, tracked = threading.Barrier(3, timeout=20), []

    def work(_: int) -> None:
        meeting.wait()
        tracked.append(torch.is_inference_mode_enabled())

    side_by_side(work, range(3), 3)
    assert tracked == [True] * 3


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_comes_through_and_threads_stay_as_they_were(workers: int) -> None:
    def work(item: int) -> None:
        if item == 2:
            raise ValueError("the third")

    before = torch.get_num_threads()
    with pytest.raises(ValueError, match="the third"):
        side_by_side(work, range(6), workers)
    assert torch.get_num_threads() == before
