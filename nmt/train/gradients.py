"""How the gradients of several processes become one.

Not by torch's DistributedDataParallel, which cannot be left in the middle of a backward pass: a process that runs out
of memory there would leave the others waiting. Here it may give up at any point; `finish` then sends what it has, all
learn from the update's sums that it was nothing, and all make the update again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
import torch.distributed as dist
from torch import Tensor, nn

BUCKET = 8 << 20  # numbers that are sent at once


class Gradients:
    """Those of a process alone: whatever the backward passes add up is the whole."""

    scale = 1
    """Multiplies the loss, where what comes of many processes is their mean."""
    heals = True
    """Whether the update can be made again when memory runs out in the middle of a batch."""

    def begin(self) -> None:
        """Before an update's first batch."""

    def passing(self, last: bool) -> AbstractContextManager[None]:
        """Around a batch's forward and backward pass, of which one is the update's last."""
        return nullcontext()

    def finish(self) -> None:
        """After the last batch, or after the one that memory ran out in: all processes have the same sums."""


class Sums(Gradients):
    """Sums over all processes, on the way while those of lower layers are still computed.

    The gradients are views of buffers, from the last parameters to the first, since the last are known first. Every
    process sends every buffer once an update, in the same order.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], contact: Callable[[], AbstractContextManager[None]]) -> None:
        self._contact = contact
        self._buffers: list[tuple[Tensor, list[tuple[nn.Parameter, Tensor]]]] = []
        for bucket in _buckets([p for p in reversed(parameters) if p.requires_grad]):
            buffer = torch.zeros(sum(p.numel() for p in bucket), dtype=bucket[0].dtype, device=bucket[0].device)
            views = buffer.split([p.numel() for p in bucket])
            self._buffers.append((buffer, [(p, v.view_as(p)) for p, v in zip(bucket, views, strict=True)]))
        self._home = {p: i for i, (_, parts) in enumerate(self._buffers) for p, _ in parts}
        self._missing = [0] * len(self._buffers)
        self._sent: list[dist.Work] = []
        self._listening = False
        self._hooks = [p.register_post_accumulate_grad_hook(self._ready) for p in self._home]

    def begin(self) -> None:
        """Zeros, of which the backward passes make sums."""
        self._sent, self._listening = [], False
        for buffer, parts in self._buffers:
            buffer.zero_()
            for parameter, view in parts:
                parameter.grad = view

    def passing(self, last: bool) -> AbstractContextManager[None]:
        """In the last, a gradient is final when it comes."""
        self._missing = [len(parts) for _, parts in self._buffers]
        self._listening = last
        return nullcontext()

    def finish(self) -> None:
        """Send what hasn't been sent, and wait for the sums."""
        self._listening = False
        while len(self._sent) < len(self._buffers):
            self._send()
        with self._contact():
            for work in self._sent:
                work.wait()

    def close(self) -> None:
        """Leave the parameters alone."""
        for hook in self._hooks:
            hook.remove()

    def _ready(self, parameter: Tensor) -> None:
        if not self._listening:
            return
        self._missing[self._home[parameter]] -= 1  # type: ignore[index]
        while len(self._sent) < len(self._buffers) and self._missing[len(self._sent)] == 0:
            self._send()

    def _send(self) -> None:
        with self._contact():
            work = dist.all_reduce(self._buffers[len(self._sent)][0], async_op=True)
        assert work is not None
        self._sent.append(work)


def _buckets(parameters: Sequence[nn.Parameter]) -> list[list[nn.Parameter]]:
    """Neighbours of one type on one device, up to BUCKET numbers; a parameter that is larger stands alone."""
    buckets: list[list[nn.Parameter]] = []
    size = 0
    for parameter in parameters:
        alike = buckets and (buckets[-1][0].dtype, buckets[-1][0].device) == (parameter.dtype, parameter.device)
        if not alike or size + parameter.numel() > BUCKET:
            buckets.append([])
            size = 0
        buckets[-1].append(parameter)
        size += parameter.numel()
    return buckets
