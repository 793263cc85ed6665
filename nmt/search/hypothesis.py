"""What search finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hypothesis:
    """One translation in ids, without begin and end marks."""

    ids: tuple[int, ...]
    log_probability: float
    """Sum over all tokens and the end mark, in nats."""
    score: float
    """`log_probability` under the length penalty: what hypotheses are ranked by."""
    token_log_probabilities: tuple[float, ...]
    """Of each token, and of the end mark at last: one more than there are ids."""
    finished: bool
    """False where the limit of length ended it, not the model."""
    bonus: float = 0.0
    """What `score` holds beyond the length-normalized log-probability."""
    pieces: tuple[str, ...] | None = None
    """What is read in place of `ids`, where that is not the same."""
