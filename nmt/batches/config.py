"""How sentences become batches: the part of [train] that shapes them."""

from __future__ import annotations

from pydantic import Field

from nmt.schema import Config, Count


class BatchConfig(Config):
    """Token-budget batches of sentences of similar length."""

    batch_tokens: Count = Field(4096, ge=1)
    """Most tokens of one batch on either side, padding and end marks counted: rows x longest row."""
    accumulate: int = Field(1, ge=1)
    """Batches that make one update; the gradient is that of all their target tokens together."""
    max_source_tokens: Count = Field(256, ge=2)
    """Longest source of a training pair in subword ids, the end mark included; longer pairs are skipped and counted."""
    max_target_tokens: Count = Field(256, ge=2)
    """Longest target of a training pair in subword ids, the end mark included; longer pairs are skipped and counted."""
