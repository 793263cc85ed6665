"""A model that is spread over the processes: each keeps a part of every weight and of its moments (torch's FSDP2).

A layer's weights are gathered when it computes, and let go afterwards; its gradients go to those who keep the parts.
All must therefore compute the same number of batches, and none may give up in the middle of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

from nmt.batches.ahead import Update
from nmt.batches.batch import Batch, collate
from nmt.model.position.core import Position
from nmt.model.seq2seq import Seq2Seq
from nmt.train.contact import Contact
from nmt.train.gradients import Gradients
from nmt.train.launch import Seat
from nmt.train.loss import Objective
from nmt.train.ranks import Group, share


class Sharded(Group):
    """One of many processes, each of which keeps a part of the model."""

    spreads = True

    def __init__(self, seat: Seat, device: torch.device, seed: int, contact: Contact) -> None:
        super().__init__(seat, device, seed, contact)
        self._whole: Whole | None = None

    def spread(self, model: Seq2Seq) -> None:
        """Keep a part of the model, which must be the same everywhere and still whole."""
        mesh = init_device_mesh(self.device.type, (self.size,))
        objective = Whole(model)
        for block in blocks(model):
            fully_shard(block, mesh=mesh)
            if isinstance(block, Position):
                register_fsdp_forward_method(block, "embed")  # the one of its methods that reads its weights
        self._whole = objective
        fetch_in_order(list(blocks(model)))
        nothing = collate([[]], [[]], bos=1, eos=1, pad=0).to(self.device)
        with torch.no_grad(), self.contact():
            root = fully_shard(objective, mesh=mesh)
            objective(nothing, 0.0, 0)  # so that it knows from now on which of its modules is the outermost
            root.reshard()

    def share(self, update: Update) -> Update:
        """As many batches as all the others have, some of them perhaps of no rows."""
        return share(update, self.rank, self.size, keep_empty=True)

    def objective(self, model: Seq2Seq, make: Callable[[Seq2Seq], nn.Module] = Objective) -> nn.Module:
        """The one that gathers what it needs, and computes what is to be made."""
        assert self._whole is not None
        self._whole.compute(make(model))
        return self._whole

    def gradients(self, model: Seq2Seq) -> Gradients:
        """Those of the parts: FSDP has added them up, and divided them by the number of processes."""
        return Parts(self.size, self.contact)

    @contextmanager
    def assembled(self, model: Seq2Seq) -> Iterator[None]:
        """Within the block every process has the whole model, and may use it as it likes."""
        root: nn.Module | None = self._whole
        assert root is not None
        parts = [module for module in root.modules() if isinstance(module, FSDPModule)]
        with self.contact():
            for part in parts:
                part.set_reshard_after_forward(False, recurse=False)
                part.unshard()
        try:
            yield
        finally:
            for part in parts:
                part.reshard()
                part.set_reshard_after_forward(part is not root, recurse=False)


class Whole(nn.Module):
    """The outermost module: a model whose weights are here while one objective or another is computed of it."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model
        self.compute(Objective(model))

    def compute(self, objective: nn.Module) -> None:
        """Compute this from now on."""
        self._objective = [objective]  # in a list: it has no weights of its own

    def forward(self, batch: Batch, smoothing: float, pad: int) -> tuple[Tensor, Tensor]:
        """The summed loss, and the summed −log p of the labels."""
        loss, nll = self._objective[0](batch, smoothing, pad)
        return loss, nll


class Parts(Gradients):
    """Gradients that FSDP adds up in the backward pass of each batch."""

    heals = False

    def __init__(self, size: int, contact: Contact) -> None:
        self.scale = size
        self._contact = contact

    def passing(self, last: bool) -> AbstractContextManager[None]:
        """Every pass waits for the others."""
        return self._contact()


def fetch_in_order(layers: Sequence[nn.Module]) -> None:
    """Let the backward pass of each layer fetch the weights of the one before it.

    Left alone, FSDP fetches in the order of the forward passes that it has seen. Those of a validation are not as many
    in every process, which would then wait for different weights.
    """
    for before, layer in zip([layers[0], *layers], layers, strict=False):
        assert isinstance(layer, FSDPModule) and isinstance(before, FSDPModule)
        layer.set_modules_to_backward_prefetch([before])


def layers(model: nn.Module) -> Iterator[nn.Module]:
    """The layers of a model: what stands in its lists."""
    return (block for block in blocks(model) if not isinstance(block, Position))


def blocks(model: nn.Module) -> Iterator[nn.Module]:
    """What is gathered at once, in the order of computing: the layers, which stand in lists, and learned positions.

    All layers of a side hold its positions, which none of them may therefore take for its own part.
    """
    for module in model.modules():
        if isinstance(module, nn.ModuleList):
            yield from module
        elif isinstance(module, Position) and next(module.parameters(), None) is not None:
            yield module
