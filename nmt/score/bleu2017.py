"""BLEU as "Attention Is All You Need" reports it (Vaswani et al. 2017, §6.1): another number than sacrebleu's.

Text is split by Moses' tokenizer, then compounds at their hyphens (``rich-text`` → ``rich ##AT##-##AT## text``), and
BLEU without smoothing counts what stands between spaces, as multi-bleu.perl does. Splitting compounds adds n-grams that
are easy to match, so the value is higher: hence a name of its own.
"""

from __future__ import annotations

import re
from typing import Any

from sacrebleu.metrics.bleu import BLEU

from nmt.corpus.moses import Moses
from nmt.score.bleu import Bleu
from nmt.score.metric import Metric

NAME = "BLEU-2017(compound-split)"
_COMPOUND = re.compile(r"(\S)-(\S)", re.ASCII)  # perl's \S on bytes: all but ASCII white space


class Bleu2017(Metric):
    """Tokenised, compound-split BLEU for text in `language`; 0 where no 4-gram matches, single sentences too."""

    details = Bleu.details

    def __init__(self, language: str, lowercase: bool = False) -> None:
        super().__init__(_Bleu(language, lowercase), _Bleu(language, lowercase, effective_order=True))


class CompoundSplit:
    """A tokenizer for sacrebleu: Moses' tokens, then hyphens between other characters as tokens of their own."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._moses = Moses(language, punctuation=False)

    def signature(self) -> str:
        """Tokenizer, its version and language, and what follows it."""
        import sacremoses

        return f"sacremoses-{sacremoses.__version__}-{self._language}+compound-split"

    def __call__(self, line: str) -> str:
        return split_compounds(self._moses.tokenize(line, split_hyphens=False))


def split_compounds(tokens: str) -> str:
    """``rich-text format`` → ``rich ##AT##-##AT## text format``, by the expression that the published scores used."""
    return _COMPOUND.sub(r"\1 ##AT##-##AT## \2", tokens)


class _Bleu(BLEU):
    def __init__(self, language: str, lowercase: bool, effective_order: bool = False) -> None:
        super().__init__(
            tokenize="none", smooth_method="none", lowercase=lowercase, force=True, effective_order=effective_order
        )
        self.tokenizer: Any = CompoundSplit(language)
        self.tokenizer_signature = self.tokenizer.signature()

    def _preprocess_segment(self, sent: str) -> str:
        """multi-bleu.perl lowers tokens; sacrebleu would lower text before it is split."""
        tokens = str(self.tokenizer(sent.rstrip()))
        return tokens.lower() if self.lowercase else tokens

    def _compute_score_from_stats(self, stats: Any) -> Any:
        score = super()._compute_score_from_stats(stats)
        score.name = NAME
        return score
