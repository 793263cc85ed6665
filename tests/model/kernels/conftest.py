"""What the tests of loops share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture
def threads() -> Iterator[None]:
    """The test may set torch's number of threads."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
