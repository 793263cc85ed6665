"""One seed; every use derives its own from (seed, purpose), so that adding a layer does not reshuffle the data."""

from __future__ import annotations

import hashlib


def derive(seed: int, purpose: str) -> int:
    """A seed of 63 bits for one purpose: "init", "dropout" or "data"."""
    return int.from_bytes(hashlib.sha256(f"{seed} {purpose}".encode()).digest()[:8], "little") >> 1
