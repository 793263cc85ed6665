"""What may be said of translating: the recipe's [translate], and the options of `nmt translate`."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator

from nmt.schema import Config, Count

MOST_EXPONENT = 10.0
"""Beyond it, of either sign, numbers of long translations are no longer told apart, or no longer numbers."""


class SearchConfig(Config):
    """Beam search. What is set here shapes the translation; batch sizes never do."""

    beam: int = Field(4, ge=1)
    """Hypotheses kept alive; 1 is greedy search."""
    length_penalty: str = "gnmt:0.6"
    """gnmt:A divides log-probability by ((5+|Y|)/6)^A (the 2017 paper), average:A by |Y|^A, none by nothing; A is
    from -10 to 10."""
    max_extra_tokens: int = Field(50, ge=0)
    """A translation has at most source length + this many tokens, end marks not counted."""
    max_source_tokens: int | None = Field(None, ge=2)
    """Longest source in ids, end mark included; longer lines are split. By default the longest of training."""
    batch_tokens: Count = Field(4096, ge=1)
    """Most source tokens of one batch, padding counted. Changes speed and memory, never the translation."""
    batch_lines: Count | None = Field(None, ge=1)
    """Most lines of one batch, beside batch_tokens."""
    buffer_lines: Count = Field(1024, ge=1)
    """Lines read ahead so that sentences of similar length share a batch; input that pauses is translated at once."""
    precision: Literal["auto", "float32", "bfloat16", "float16", "int8"] = "float32"
    """Arithmetic of the model while translating. bfloat16, float16 (GPUs only) and int8 (processors only) are faster
    and round; auto is the fastest here."""

    @field_validator("length_penalty")
    @classmethod
    def _known_penalty(cls, value: str) -> str:
        if not re.fullmatch(r"none|(gnmt|average):-?\d+(\.\d+)?", value):
            raise ValueError("a length penalty is gnmt:A, average:A or none, such as gnmt:0.6")
        if value != "none" and abs(float(value.partition(":")[2])) > MOST_EXPONENT:
            raise ValueError(f"a length penalty's number is from -{MOST_EXPONENT:g} to {MOST_EXPONENT:g}")
        return value
