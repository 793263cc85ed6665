"""How sentences become batches: the part of [train] that shapes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, PlainSerializer, WrapValidator

from nmt.schema import Config, Count

if TYPE_CHECKING:
    BatchTokens = int | Literal["auto"]
else:  # pydantic would tell what is wrong with each side of a union

    def _number_unless_auto(value: Any, number: Any) -> Any:
        return value if value == "auto" else number(value)

    BatchTokens = Annotated[
        Count, Field(ge=1), WrapValidator(_number_unless_auto), PlainSerializer(lambda value: value)
    ]


class BatchConfig(Config):
    """Token-budget batches of sentences of similar length."""

    batch_tokens: BatchTokens = 4096
    """Most tokens of one batch on either side, padding and end marks counted: rows x longest row. auto measures, when
    training begins, how many fit into memory and still train faster than fewer; restarts use the same number."""
    accumulate: int = Field(1, ge=1)
    """Batches that make one update; the gradient is that of all their target tokens together."""
    max_source_tokens: Count = Field(256, ge=2)
    """Longest source of a training pair in subword ids, the end mark included; longer pairs are skipped and counted."""
    max_target_tokens: Count = Field(256, ge=2)
    """Longest target of a training pair in subword ids, the end mark included; longer pairs are skipped and counted."""
