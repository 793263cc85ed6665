"""What may be said of scoring: the recipe's [score]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from nmt.schema import Config
from nmt.score.languages import UNSPACED, base, tokenizer_for

if TYPE_CHECKING:
    from nmt.score.metric import Metric

Tokenizer = Literal[
    "13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "none", "flores101", "flores200", "spm", "spBLEU-1K"
]


class BleuConfig(Config):
    """BLEU (Papineni et al. 2002) as sacrebleu computes it."""

    kind: Literal["bleu"] = "bleu"
    tokenize: Tokenizer | None = None
    """sacrebleu's tokenizer; by default zh for Chinese, ja-mecab for Japanese, ko-mecab for Korean, 13a otherwise."""
    lowercase: bool = False
    """Compare in lower case."""

    def build(self, target_language: str) -> Metric:
        """The metric for text in `target_language`. Raises DataError when its tokenizer is not installed."""
        from nmt.score.bleu import Bleu

        return Bleu(self.tokenize or tokenizer_for(target_language), self.lowercase)


class ChrfConfig(Config):
    """chrF (Popović 2015); with word_order 2 it is chrF++."""

    kind: Literal["chrf"] = "chrf"
    word_order: int = Field(0, ge=0)
    """Longest word n-gram."""
    lowercase: bool = False
    """Compare in lower case."""

    def build(self, target_language: str) -> Metric:
        """The metric; chrF is the same for every language."""
        from nmt.score.chrf import Chrf

        return Chrf(self.word_order, self.lowercase)


class TerConfig(Config):
    """Translation edit rate (Snover et al. 2006): lower is better."""

    kind: Literal["ter"] = "ter"
    lowercase: bool = True
    """Compare in lower case, as sacrebleu does by default."""

    def build(self, target_language: str) -> Metric:
        """The metric; Chinese and Japanese are split into characters, which the signature says (asian:yes)."""
        from nmt.score.ter import Ter

        return Ter(self.lowercase, asian=base(target_language) in UNSPACED)


class Bleu2017Config(Config):
    """BLEU on words of Moses' tokenizer with compounds split at hyphens, as the papers of 2016 and 2017 report it."""

    kind: Literal["bleu-2017"] = "bleu-2017"
    lowercase: bool = False
    """Compare in lower case."""

    def build(self, target_language: str) -> Metric:
        """The metric, with the tokenizer's rules for `target_language` (English's where none is given)."""
        from nmt.score.bleu2017 import Bleu2017

        return Bleu2017(target_language or "en", self.lowercase)


MetricConfig = Annotated[BleuConfig | ChrfConfig | TerConfig | Bleu2017Config, Field(discriminator="kind")]


def named(names: Sequence[str], tokenize: str | None = None, lowercase: bool = False) -> list[MetricConfig]:
    """The metrics bleu, chrf, chrf++, ter and bleu-2017 by name. TER is in lower case by default, as in sacrebleu."""
    known: dict[str, MetricConfig] = {
        "bleu": BleuConfig.model_validate({"tokenize": tokenize, "lowercase": lowercase}),
        "chrf": ChrfConfig(lowercase=lowercase),
        "chrf++": ChrfConfig(word_order=2, lowercase=lowercase),
        "ter": TerConfig(),
        "bleu-2017": Bleu2017Config(lowercase=lowercase),
    }
    return [known[name] for name in dict.fromkeys(names)]


class ScoreConfig(Config):
    """The metrics of the table of scores."""

    metrics: tuple[MetricConfig, ...] = (BleuConfig(), ChrfConfig(), TerConfig())
    """One table for each metric, e.g. metrics = [{kind = "bleu"}, {kind = "chrf"}]."""
