"""Adam and plain descent, torch's own; and their moments under the parameters' names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from nmt.checkpoint.tensors import spread_like
from nmt.errors import ModelError
from nmt.model.embedding import Embedding, Output


def adam(
    model: nn.Module, *, betas: tuple[float, float], epsilon: float, weight_decay: float = 0.0
) -> torch.optim.Optimizer:
    """Adam with decoupled weight decay of matrices (Kingma & Ba 2015; Loshchilov & Hutter 2019).

    The rate is set before each update; `fused` does it in one pass over the weights, on CPU and GPU alike.
    """
    matrices, others = decayed(model)
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]], lr=0.0, betas=betas, eps=epsilon, weight_decay=0.0, fused=True
    )


def sgd(model: nn.Module, *, momentum: float = 0.0) -> torch.optim.Optimizer:
    """w ← w − rate · gradient, with an optional share of the step before."""
    return torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.0, momentum=momentum)


def decayed(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The parameters that weight decay shrinks, and the others: biases, norms, embeddings, the output matrix."""
    spared = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, Embedding | Output | nn.Embedding)
        for parameter in module.parameters()
    }
    parameters = [p for p in model.parameters() if p.requires_grad]
    matrices = [p for p in parameters if p.ndim >= 2 and id(p) not in spared]
    chosen = {id(p) for p in matrices}
    return matrices, [p for p in parameters if id(p) not in chosen]


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """The learning rate of the next step."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def moments(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """What the optimizer remembers, as `parameter.moment`."""
    return {
        f"{name}.{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, Tensor)
    }


def restore(optimizer: torch.optim.Optimizer, model: nn.Module, stored: Mapping[str, Tensor]) -> None:
    """Put the moments back. Rates and decays stay as the optimizer was built. Raises ModelError for a foreign name.

    Those of a weight that has been frozen since are left out; one that is frozen no more begins without any.
    """
    parameters = dict(model.named_parameters())
    frozen = {name for name, parameter in parameters.items() if not parameter.requires_grad}
    names = {id(parameter): name for name, parameter in parameters.items()}
    ordered = [names[id(p)] for group in optimizer.param_groups for p in group["params"]]
    state: dict[int, dict[str, Any]] = {}
    for full, tensor in stored.items():
        name, _, key = full.rpartition(".")
        if name in frozen:
            continue
        if name not in ordered:
            raise ModelError(f"the stored optimizer knows {name}, the model does not", "train in another run folder")
        state.setdefault(ordered.index(name), {})[key] = spread_like(tensor, parameters[name])
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
