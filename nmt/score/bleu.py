"""BLEU (Papineni et al. 2002), sacrebleu's implementation (Post 2018)."""

from __future__ import annotations

import os
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
from sacrebleu.utils import SACREBLEU_DIR

from nmt.errors import DataError
from nmt.score.metric import Metric


class Bleu(Metric):
    """Corpus BLEU; single sentences are scored with effective order, so that short ones are not all 0."""

    def __init__(self, tokenize: str, lowercase: bool) -> None:
        _check_tokenizer(tokenize)
        # `force` only silences sacrebleu's own hint about spaced full stops; checks.py tells more.
        plain: dict[str, Any] = {"tokenize": tokenize, "lowercase": lowercase, "force": True}
        super().__init__(BLEU(**plain), BLEU(**plain, effective_order=True))

    def words(self, line: str) -> list[str]:
        """The words of `line` as BLEU counts them."""
        return str(self.corpus._preprocess_segment(line)).split()

    def details(self, result: Any) -> dict[str, Any]:
        """n-gram precisions in percent, brevity penalty, lengths in tokens and their ratio."""
        return {
            "precisions": [float(value) for value in result.precisions],
            "brevity_penalty": float(result.bp),
            "hypothesis_length": int(result.sys_len),
            "reference_length": int(result.ref_len),
            "length_ratio": float(result.ratio),
        }


def _check_tokenizer(name: str) -> None:
    """Raises DataError when tokenizer `name` cannot work here: a fallback would give another number under its name."""
    if name in {"ja-mecab", "ko-mecab"}:
        try:
            BLEU(tokenize=name)
        except (RuntimeError, ImportError) as error:
            command = f"pip install 'sacrebleu[{name[:2]}]'"
            raise DataError(f"BLEU's tokenizer {name} is not installed", command) from error
    elif name in SPM_MODELS:
        url = SPM_MODELS[SPM_MODELS[name]["signature"]]["url"]
        path = os.path.join(SACREBLEU_DIR, "models", os.path.basename(url))
        if not os.path.exists(path):  # sacrebleu would download it; nothing here does so unasked
            raise DataError(f"BLEU's tokenizer {name} needs its model at {path}", f"download {url} to that path")
