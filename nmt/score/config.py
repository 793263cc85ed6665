"""What may be said of scoring: the recipe's [score]."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from nmt.schema import Config


class BleuConfig(Config):
    """BLEU (Papineni et al. 2002) as sacrebleu computes it."""

    kind: Literal["bleu"] = "bleu"
    tokenize: str | None = None
    """sacrebleu's tokenizer; by default zh for Chinese, ja-mecab for Japanese, ko-mecab for Korean, 13a otherwise."""
    lowercase: bool = False
    """Compare in lower case."""


class ChrfConfig(Config):
    """chrF (Popović 2015); with word_order 2 it is chrF++."""

    kind: Literal["chrf"] = "chrf"
    word_order: int = Field(0, ge=0)
    """Longest word n-gram."""
    lowercase: bool = False
    """Compare in lower case."""


class TerConfig(Config):
    """Translation edit rate (Snover et al. 2006): lower is better."""

    kind: Literal["ter"] = "ter"
    lowercase: bool = True
    """Compare in lower case, as sacrebleu does by default."""


MetricConfig = Annotated[BleuConfig | ChrfConfig | TerConfig, Field(discriminator="kind")]


class ScoreConfig(Config):
    """The metrics of the table of scores."""

    metrics: tuple[MetricConfig, ...] = (BleuConfig(), ChrfConfig(), TerConfig())
    """One table for each metric, e.g. metrics = [{kind = "bleu"}, {kind = "chrf"}]."""
