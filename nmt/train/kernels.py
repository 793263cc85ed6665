"""Which of torch's attention kernels a GPU trains with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def attention_kernels(device: torch.device) -> Iterator[None]:
    """Within it, attention on a GPU is that of the flash and memory-efficient kernels, not cuDNN's.

    Some versions of torch would choose cuDNN's first. It plans a program for each new shape, and training meets as many
    shapes as there are lengths of sentences and sizes of batches.
    """
    if device.type != "cuda":
        yield
        return
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)
