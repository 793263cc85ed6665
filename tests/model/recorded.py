"""What a GPU does with a captured work, on a processor: the same operations, in the same memory, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from nmt.model.inference.graphs import Graphs

ASKING = ("_local_scalar_dense", "nonzero", "masked_select", "_unique", "equal.", "is_nonzero")
"""Operations that wait for the value of a tensor, which no capture allows."""


class Recorder(TorchDispatchMode):
    """Every operation, with the tensors that it read and gave."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Any, Any, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert not any(name in str(func) for name in ASKING), f"{func} asks for a number"
        given = func(*args, **(kwargs or {}))
        self.calls.append((func, args, kwargs or {}, given))
        return given


class Graph:
    """A recorded work. Replayed, every operation reads and writes the very memory of its first time.

    What it makes in between belongs to all works, so that it is spoiled in the end.
    """

    def __init__(self, calls: Sequence[tuple[Any, Any, Any, Any]]) -> None:
        self.calls = calls
        self.between: dict[int, Any] = {}
        for _, args, kwargs, given in calls:
            read = {storage.data_ptr() for storage in _storages((args, kwargs))}
            self.between |= {s.data_ptr(): s for s in _storages(given) if s.data_ptr() not in read}

    def replay(self) -> None:
        """Do all operations once more."""
        for func, args, kwargs, old in self.calls:
            for first, again in zip(tree_leaves(old), tree_leaves(func(*args, **kwargs)), strict=True):
                if isinstance(first, Tensor) and first.data_ptr() != again.data_ptr():
                    first.copy_(again)
        for storage in self.between.values():
            storage.fill_(255)  # of all bits set are NaN, and no index


def _storages(tensors: Any) -> list[Any]:
    return [leaf.untyped_storage() for leaf in tree_leaves(tensors) if isinstance(leaf, Tensor)]


class Recorded(Graphs):
    """Captures by recording."""

    def __init__(self) -> None:
        super().__init__(torch.device("cpu"))
        self.captures, self.count = True, 0

    def _capture(self, work: Callable[[], None]) -> Any:
        work()  # warming up must leave nothing behind
        work()
        with Recorder() as recorder:
            work()
        self.count += 1
        return Graph(recorder.calls)
