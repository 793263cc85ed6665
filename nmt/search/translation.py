"""What becomes of a line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Candidate:
    """A translation with the model's opinion of it, in nats."""

    text: str
    score: float
    """Log-probability under the length penalty: what candidates are ranked by."""
    log_probability: float
    tokens: tuple[str, ...] = ()
    """Subword pieces, without end mark."""
    token_log_probabilities: tuple[float, ...] = ()
    """Of every piece and, at last, of the end mark (of each part, where a line was split)."""
    finished: bool = True
    """False where the limit of length ended it, not the model."""
    features: tuple[tuple[str, float], ...] = ()
    """What else was weighed in `score`, by name."""
    alignment: tuple[tuple[int, int], ...] | None = None
    """Pairs of a source word and a target word that comes from it, from 0, where asked for."""
    source_length: int | None = None
    """Tokens of the source that it was scored for, tag and end mark counted, where the translation was given."""


@dataclass(frozen=True)
class Translation:
    """What became of one line."""

    number: int
    """The line's number, from 0."""
    source: str
    """The line as it was read."""
    alternatives: tuple[Candidate, ...]
    """The n best, best first, distinct as token strings."""
    source_tokens: tuple[str, ...] = ()
    """Subword pieces of the source, without end mark."""
    cautions: tuple[str, ...] = ()
    """What should be known about it, for instance that the line was split."""

    markup: bool = False
    """Whether the source and its translations hold tags and entities."""
    tag: str = ""
    """The tag that was asked for before the source; empty is the model's own choice."""

    @property
    def best(self) -> Candidate:
        """The best candidate."""
        return self.alternatives[0]

    @property
    def text(self) -> str:
        """The best translation."""
        return self.best.text

    @property
    def score(self) -> float:
        """Of the best translation."""
        return self.best.score
