"""LayerNorm and the residual sum, with weights of their own, for the forms that compute in torch's operations."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nmt.model.layers import Residual


class Norm:
    """A LayerNorm, its weights copied, in another type if one is named; of nothing, the identity."""

    def __init__(self, norm: nn.Module, dtype: torch.dtype | None = None) -> None:
        self.shape: tuple[int, ...] = ()
        if isinstance(norm, nn.LayerNorm):
            self.shape, self.eps = norm.normalized_shape, norm.eps
            kind = dtype or norm.weight.dtype
            self.weight_D, self.bias_D = (part.detach().to(kind, copy=True) for part in (norm.weight, norm.bias))

    def __call__(self, x: Tensor) -> Tensor:
        return torch.layer_norm(x, self.shape, self.weight_D, self.bias_D, self.eps) if self.shape else x


class ResidualSum:
    """The sum of a part's input and output, its LayerNorm before or after."""

    def __init__(self, residual: Residual, dtype: torch.dtype | None = None) -> None:
        norm, nothing = Norm(residual.norm, dtype), Norm(nn.Identity())
        self.before, self.finish = (nothing, norm) if residual.post else (norm, nothing)

    def after(self, x: Tensor, y: Tensor) -> Tensor:
        """What the next part reads, where `y` is what this one gave."""
        return self.finish(x + y)
