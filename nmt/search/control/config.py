"""What `nmt translate` and Python may ask for beyond the recipe's [translate]; everything is neutral by default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field, model_validator

from nmt.checking import EVERY_KEY, check
from nmt.errors import RecipeError, SettingsError
from nmt.search.config import SearchConfig

PER_LINE = frozenset(
    {
        "max_extra_tokens",
        "diversity",
        "coverage_penalty",
        "lm_weight",
        "unique_text",
        "replace_unk",
        "min_length",
        "max_length",
        "min_length_ratio",
        "max_length_ratio",
        "no_repeat_ngram",
        "repetition_penalty",
        "sample",
        "temperature",
        "top_k",
        "top_p",
        "seed",
    }
)
"""Settings that a line may have for itself."""


SETTINGS_HINT = "nmt translate --help tells what each setting may be"


class ControlConfig(SearchConfig):
    """Settings of search and of the control over it. Lengths are subword tokens without the end mark."""

    patience: float = Field(1.0, ge=1, le=1e6)
    """The search for a line ends once beam × this many hypotheses have ended, if not before; a beam of 1 is
    greedy search whatever stands here."""
    beam_groups: int = Field(1, ge=1)
    """The beam is divided into this many groups, which differ from each other by `diversity`; 1 is plain search."""
    diversity: float = Field(0.5, ge=0, le=1000)
    """What a token loses in a group's eyes for each hypothesis of an earlier group that took it at the same step."""
    coverage_penalty: float = Field(0.0, ge=0, le=1000)
    """Weight of source coverage in the choice among the beam's translations: Wu et al. 2016, eq. 14; 0 is none."""
    min_length: int = Field(0, ge=0)
    """A translation has at least this many tokens."""
    max_length: int | None = Field(None, ge=1)
    """A translation has at most this many tokens."""
    min_length_ratio: float = Field(0.0, ge=0)
    """A translation has at least this many tokens for each source token, rounded up."""
    max_length_ratio: float | None = Field(None, gt=0)
    """A translation has at most this many tokens for each source token, rounded down, but one in any case."""
    lm_weight: float = Field(0.2, ge=0, le=1000)
    """Weight of the log-probabilities of a language model, where one is given; 0 ignores it."""
    unique_text: bool = False
    """No two translations of a line have the same text; without, they differ as tokens."""
    replace_unk: bool = False
    """The unknown token may be chosen, and the source word that it looks at stands in its place."""
    no_repeat_ngram: int = Field(0, ge=0)
    """No sequence of this many tokens occurs twice; 0 allows repetitions."""
    repetition_penalty: float = Field(1.0, gt=0)
    """Log-probabilities of tokens that were written already are multiplied by this; 1 changes nothing."""
    sample: bool = False
    """Draw translations at random instead of searching for the best."""
    temperature: float = Field(1.0, ge=1e-4, le=1e4)
    """What log-probabilities are divided by before drawing; below 1 prefers the probable."""
    top_k: int = Field(0, ge=0)
    """Draw from this many most probable tokens only; 0 means all."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Draw from the fewest tokens that together have this probability."""
    workers: int | None = Field(None, ge=1)
    """Batches computed at the same time, on their share of the threads; by default one a thread. No result changes."""
    seed: int = 1
    """Chooses the random numbers: each source text has its own, whatever stands beside it."""

    @classmethod
    def neutral(cls) -> dict[str, Any]:
        """The values that change nothing, of settings which no model has values of its own for."""
        own = cls.model_fields.keys() - SearchConfig.model_fields.keys()
        return {name: cls.model_fields[name].get_default() for name in own}

    @model_validator(mode="after")
    def _can_be_met(self) -> Self:
        if self.beam % self.beam_groups:
            raise ValueError(f"beam = {self.beam} is not a multiple of beam_groups = {self.beam_groups}")
        if self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(f"min_length = {self.min_length} is more than max_length = {self.max_length}")
        if self.max_length_ratio is not None and self.min_length_ratio > self.max_length_ratio:
            raise ValueError(
                f"min_length_ratio = {self.min_length_ratio:g} is more than max_length_ratio = "
                f"{self.max_length_ratio:g}"
            )
        return self


def check_settings(values: Mapping[str, Any], place: str) -> ControlConfig:
    """`values` as settings. Raises SettingsError, which names `place`, for those that don't fit."""
    try:
        return check(ControlConfig, values, place)
    except RecipeError as error:
        raise SettingsError(error.problem, SETTINGS_HINT if error.hint == EVERY_KEY else error.hint) from None
