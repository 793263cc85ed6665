"""The layers of a model as programs that torch's compiler makes of them, for training alone.

Layer by layer, since all layers of one kind are one program: a model of twelve is compiled as fast as one of two. What
stands around them is little: embeddings, and the loss, which brings its own way through memory (nmt/train/loss.py).
Programs are for sentences of any length and number from the start (`dynamic`). Left to itself, torch would compile the
first shape for itself, and what a training that goes on computes would depend on where it was interrupted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from nmt.errors import TrainingError
from nmt.model.layer_drop import MayBeLeftOut
from nmt.model.seq2seq import Seq2Seq
from nmt.model.ways import Way
from nmt.train.sharding import layers

Backend = str | Callable[..., Any]


def compile_layers(model: Seq2Seq, backend: Backend = "inductor") -> None:
    """Compute the layers of `model` by compiled programs whenever it is trained.

    They are compiled when they are first needed. Parameters, their names, and whatever is done with the model beside
    training stay as they are. Raises TrainingError where nothing can be compiled.
    """
    _try(model.output_weight_VD.device, backend)
    model.trains = Way.FUSED
    for layer in layers(model):
        layer.forward = partial(_run, layer, backend)


def _run(layer: nn.Module, backend: Backend, *given: Any) -> Any:
    """A layer's forward pass: what an update leaves out, or is no training, isn't worth a program."""
    plain = type(layer).forward
    if not layer.training or (isinstance(layer, MayBeLeftOut) and layer.left_out):
        return plain(layer, *given)
    return _program(plain, backend)(layer, *given)


@cache
def _program(forward: Callable[..., Any], backend: Backend) -> Callable[..., Any]:
    return torch.compile(forward, dynamic=True, backend=backend)


def _try(device: torch.device, backend: Backend) -> None:
    """Compile next to nothing, so that what is missing is told before training begins."""
    try:
        _program(_twice, backend)(torch.ones(2, 3, device=device))
    except Exception as error:
        reason = getattr(error, "inner_exception", error)  # what stopped the compiler, without torch's advice
        first = next(iter(str(reason).splitlines()), type(reason).__name__)
        raise TrainingError(
            f"train.compile = true: torch cannot compile for {device} here: {first}",
            "set train.compile = false, or install a C++ compiler such as g++ (on a GPU also triton)",
        ) from error


def _twice(x: Tensor) -> Tensor:
    return x + x
