"""Where a token stands: three hooks, each of which a position encoding may override.

B batch · T tokens · D width · H heads · E width of a head · Q queries · K keys
"""

from __future__ import annotations

from torch import Tensor, nn


class Position(nn.Module):
    """No position at all: what the hooks do unless overridden. `start` is the place of the first token given."""

    def embed(self, x_BTD: Tensor, start: int = 0) -> Tensor:
        """The embeddings as the first layer shall see them."""
        return x_BTD

    def rotate(self, x_BHTE: Tensor, start: int = 0) -> Tensor:
        """Queries or keys of self-attention as they shall be compared."""
        return x_BHTE

    def bias(self, q_BHQE: Tensor, keys: int, start: int = 0) -> Tensor | None:
        """What is added to the scores of keys 0 … `keys` - 1, broadcast to BHQK; None is nothing."""
        return None
