"""Translation edit rate (Snover et al. 2006), sacrebleu's implementation."""

from __future__ import annotations

from typing import Any

from sacrebleu.metrics.ter import TER

from nmt.score.metric import Metric


class Ter(Metric):
    """Edits per reference word, in percent. `asian` also splits Chinese and Japanese text into characters."""

    higher_is_better = False

    def __init__(self, lowercase: bool, asian: bool) -> None:
        # Without normalisation sacrebleu takes an unspaced sentence for a single word; the signature shows both flags.
        metric = TER(case_sensitive=not lowercase, normalized=asian, asian_support=asian)
        super().__init__(metric, metric)

    def details(self, result: Any) -> dict[str, Any]:
        """Edits, and length of the references in words."""
        return {"edits": int(result.num_edits), "reference_length": float(result.ref_length)}
