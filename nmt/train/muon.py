"""Muon: momentum whose matrices are made orthogonal before they are subtracted (Jordan et al. 2024).

B matrices of one shape · I rows · O columns
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from nmt.checkpoint.tensors import part_like, whole
from nmt.train.optimizer import decayed

_TERMS = 3.4445, -4.7750, 2.0315  # of Jordan's polynomial aX + b(XXᵀ)X + c(XXᵀ)²X
_SIZE = 0.2  # root mean square of an update with rate 1, about that of Adam (Liu et al. 2025, §2.2)
_TOGETHER = 1 << 26  # numbers that are turned at once: of a model that is spread over processes, all are not here


class Muon(torch.optim.AdamW):
    """Muon for the matrices of layers, and AdamW for all else: embeddings, the output matrix, biases and norms.

    torch's own class takes matrices one by one and nothing else. Here those of one shape are turned together, which
    takes a third of the time, and one learning rate serves both halves: an update's size is made that of Adam's.
    """

    def __init__(
        self,
        matrices: Sequence[nn.Parameter],
        others: Sequence[nn.Parameter],
        *,
        momentum: float,
        iterations: int,
        dtype: torch.dtype,
        betas: tuple[float, float],
        epsilon: float,
        weight_decay: float,
    ) -> None:
        groups = [
            {"params": list(others), "weight_decay": 0.0, "orthogonal": False},
            {"params": list(matrices), "weight_decay": weight_decay, "orthogonal": True},
        ]
        super().__init__([g for g in groups if g["params"]], lr=0.0, betas=betas, eps=epsilon, fused=True)
        self.momentum, self.iterations, self.dtype = momentum, iterations, dtype

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """One update by the gradients that there are."""
        assert closure is None
        groups = self.param_groups
        self.param_groups = [group for group in groups if not group["orthogonal"]]
        try:
            super().step()
        finally:
            self.param_groups = groups
        for group in groups:
            if group["orthogonal"]:
                self._turn([p for p in group["params"] if p.grad is not None], group["lr"], group["weight_decay"])

    def __setstate__(self, state: dict[str, Any]) -> None:
        """As of any optimizer: AdamW's own would look for its moments in every parameter, to repair old files."""
        torch.optim.Optimizer.__setstate__(self, state)

    def _turn(self, matrices: Sequence[nn.Parameter], rate: float, weight_decay: float) -> None:
        """Update the matrices, those of one shape at once."""
        for some in _alike(matrices):
            size = _SIZE * max(some[0].shape) ** 0.5
            pushed_BIO = torch.stack([whole(self._pushed(matrix)) for matrix in some])
            turned_BIO = orthogonal(pushed_BIO, self.iterations, self.dtype).to(some[0].dtype)
            for matrix, step_IO in zip(some, turned_BIO, strict=True):
                matrix.mul_(1 - rate * weight_decay).sub_(part_like(step_IO, matrix), alpha=rate * size)

    def _pushed(self, matrix: nn.Parameter) -> Tensor:
        """The mean of all gradients so far, newer ones weighing more, as seen from one update ahead (Nesterov)."""
        gradient, state = matrix.grad, self.state[matrix]
        assert gradient is not None
        if not state:
            state["momentum"] = torch.zeros_like(matrix)
        state["momentum"].lerp_(gradient, 1 - self.momentum)
        return gradient.lerp(state["momentum"], self.momentum)


def _alike(matrices: Sequence[nn.Parameter]) -> Iterator[Sequence[nn.Parameter]]:
    """Those of one shape together, as many as may be turned at once."""
    shapes: dict[torch.Size, list[nn.Parameter]] = {}
    for matrix in matrices:
        shapes.setdefault(matrix.shape, []).append(matrix)
    for shape, some in shapes.items():
        count = max(1, _TOGETHER // shape.numel())
        yield from (some[first : first + count] for first in range(0, len(some), count))


def orthogonal(x_BIO: Tensor, iterations: int, dtype: torch.dtype) -> Tensor:
    """Each matrix with all its singular values brought near 1, its singular vectors as they are, in `dtype`.

    A polynomial of odd powers changes singular values alone; this one moves all but tiny ones into 0.7 to 1.2 within
    five iterations (Jordan et al. 2024). What remains of a factor makes no difference to training.
    """
    a, b, c = _TERMS
    tall = x_BIO.size(1) > x_BIO.size(2)
    x_BIO = x_BIO.mT if tall else x_BIO  # squares of the shorter side are cheaper
    x_BIO = (x_BIO / x_BIO.norm(dim=(1, 2), keepdim=True).clamp(min=1e-30)).to(dtype)
    for _ in range(iterations):
        square_BII = x_BIO @ x_BIO.mT
        terms_BII = torch.baddbmm(square_BII, square_BII, square_BII, beta=b, alpha=c)
        x_BIO = torch.baddbmm(x_BIO, terms_BII, x_BIO, beta=a)
    return x_BIO.mT if tall else x_BIO


def muon(
    model: nn.Module,
    *,
    momentum: float,
    iterations: int,
    precision: Literal["float32", "bfloat16"],
    betas: tuple[float, float],
    epsilon: float,
    weight_decay: float = 0.0,
) -> Muon:
    """Muon for `model`; matrices are made orthogonal in the arithmetic that the model is trained in."""
    matrices, others = decayed(model)
    return Muon(
        [p for p in matrices if p.ndim == 2],
        [*others, *(p for p in matrices if p.ndim != 2)],
        momentum=momentum,
        iterations=iterations,
        dtype=getattr(torch, precision),
        betas=betas,
        epsilon=epsilon,
        weight_decay=weight_decay,
    )
