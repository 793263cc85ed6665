"""Work over static memory that a GPU is told once and then replays by itself: CUDA graphs.

A step of a decoder is some hundred small operations, which a GPU ends sooner than Python can begin them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

_log = logging.getLogger(__name__)
_ONE_AT_A_TIME = threading.Lock()  # captures, on whatever device
_WARM_UP = 3  # runs before a capture, as torch's documentation asks: libraries prepare themselves in them


class Replay:
    """Calls `work`, which reads and writes the same tensors each time and asks for the value of none.

    On a GPU it is captured at the first call and replayed from then on; elsewhere it simply runs.
    """

    def __init__(self, graphs: Graphs, work: Callable[[], None], changes: Sequence[Tensor]) -> None:
        self.graphs, self.work, self.changes = graphs, work, changes
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        """Do the work once."""
        if self.graph is None and self.graphs.captures:
            self.graph = self.graphs.captured(self.work, self.changes)
        if self.graph is None:
            self.work()
        else:
            self.graph.replay()


class Graphs:
    """What captured works of one device share: a pool for what they make in between, and a stream to be captured on.

    They are replayed one after another, on one stream, and leave nothing in the pool that another one reads.
    """

    def __init__(self, device: torch.device) -> None:
        self.device, self.captures = device, device.type == "cuda"
        if self.captures:
            self.pool = torch.cuda.graph_pool_handle()
            self.stream = torch.cuda.Stream(device)

    def of(self, work: Callable[[], None], changes: Sequence[Tensor] = ()) -> Replay:
        """`work`, to be captured; `changes` are the tensors that make it another work when it is done again."""
        return Replay(self, work, changes)

    def captured(self, work: Callable[[], None], changes: Sequence[Tensor]) -> torch.cuda.CUDAGraph | None:
        """The graph of `work`, which has not been done yet when this returns; None where it can't be captured.

        Then nothing more is captured on this device: everything simply runs, and a warning says so.
        """
        before = [tensor.clone() for tensor in changes]
        graph = None
        try:
            with _ONE_AT_A_TIME:
                graph = self._capture(work)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            self.captures = False
            _log.warning("steps are not captured on %s, which makes them slower: %s", self.device, error)
        for tensor, old in zip(changes, before, strict=True):
            tensor.copy_(old)
        return graph

    def _capture(self, work: Callable[[], None]) -> torch.cuda.CUDAGraph:
        with torch.cuda.device(self.device):
            current = torch.cuda.current_stream(self.device)
            self.stream.wait_stream(current)
            with torch.cuda.stream(self.stream):
                for _ in range(_WARM_UP):
                    work()
            current.wait_stream(self.stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self.pool, stream=self.stream, capture_error_mode="thread_local"):
                work()
        return graph
