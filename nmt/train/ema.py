"""An exponential moving average of the weights: a second model, calmer than the one that learns.

After update n every averaged weight m moves towards the trained one w, m ← d·m + (1 − d)·w, with

    d = min(decay, (1 + n) / (10 + n)),

so that the first updates, which are far from the last ones, are soon forgotten (Polyak & Juditsky 1992; the warm-up is
that of TensorFlow's ExponentialMovingAverage).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from nmt.checkpoint.tensors import weights


class Ema:
    """The moving average of a model's weights that are trained; those that are frozen are the model's own.

    It begins as the weights of the moment. `number` of an update counts those that changed the weights, from 1.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.model = model
        self.decay = decay
        self._trained = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
        self._mean = {name: tensor.clone() for name, tensor in self._trained.items()}

    def begin(self) -> None:
        """Take the weights that the model has now for the average."""
        for name, tensor in self._trained.items():
            self._mean[name].copy_(tensor)

    def update(self, number: int) -> None:
        """Take in the weights after update `number`: one pass over them."""
        share = 1.0 - min(self.decay, (1 + number) / (10 + number))
        torch._foreach_lerp_(list(self._mean.values()), list(self._trained.values()), share)

    def weights(self) -> dict[str, Tensor]:
        """All weights of the averaged model, as nmt.checkpoint.tensors.weights gives the trained one's."""
        return {name: self._mean.get(name, tensor) for name, tensor in weights(self.model).items()}

    def trained(self) -> dict[str, Tensor]:
        """The weights that learn, of which the average is made."""
        return dict(self._trained)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Within the block the model holds the averaged weights, then the very same trained ones again."""
        own = {name: tensor.clone() for name, tensor in self._trained.items()}
        try:
            self._put(self._mean)
            yield
        finally:
            self._put(own)

    def _put(self, values: dict[str, Tensor]) -> None:
        for name, tensor in self._trained.items():
            tensor.copy_(values[name])
