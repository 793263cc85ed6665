"""Length penalties: what log-probabilities of hypotheses of unequal length are divided by before they are compared.

|Y| is the number of tokens of a hypothesis, its end mark counted.

- ``gnmt:A``    ((5 + |Y|) / 6)^A   Wu et al. 2016, eq. 14; A = 0.6 in Vaswani et al. 2017, §6.1
- ``average:A`` |Y|^A               the "lenpen" of fairseq, the "normalize" of Marian
- ``none``      1
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeVar

from torch import Tensor

from nmt.errors import NmtError
from nmt.search.config import MOST_EXPONENT

Number = TypeVar("Number", float, Tensor)
_NAMED = re.compile(r"(gnmt|average):(-?\d+(?:\.\d+)?)")


@dataclass(frozen=True)
class Penalty:
    """((offset + |Y|) / (offset + 1))^exponent, which both named forms are: offset 5 and offset 0."""

    offset: float
    exponent: float

    def divisor(self, length: Any) -> Any:
        """What the log-probability of `length` tokens, end mark counted, is divided by; above zero, monotone."""
        return ((self.offset + length) / (self.offset + 1)) ** self.exponent

    def score(self, log_probability: Number, length: float | Tensor) -> Number:
        """The length-normalized log-probability, in nats; of numbers or of tensors."""
        return log_probability / self.divisor(length)

    def best(self, log_probability: Number, shortest: float | Tensor, longest: float | Tensor) -> Number:
        """The best score that hypotheses of this log-probability could still reach when they end.

        Tokens to come lower the log-probability or leave it, so it is at best what it is now. The divisor is monotone
        in the length, hence largest, and a negative number's quotient best, at one end of `shortest` to `longest`:
        at the longest for a positive exponent, at the shortest for a negative one.
        """
        return self.score(log_probability, longest if self.exponent > 0 else shortest)


def parse_penalty(text: str) -> Penalty:
    """The penalty named by `text`: "gnmt:0.6", "average:1", "none", A from -10 to 10. Raises NmtError for others."""
    if text == "none":
        return Penalty(0.0, 0.0)
    match = _NAMED.fullmatch(text)
    if match is None:
        raise NmtError(
            f"length penalty {text!r} is not gnmt:A, average:A or none",
            "gnmt:0.6 is the 2017 paper's, average:1 a mean",
        )
    if abs(float(match[2])) > MOST_EXPONENT:
        raise NmtError(
            f"length penalty {text!r}: its number is from -{MOST_EXPONENT:g} to {MOST_EXPONENT:g}",
            "gnmt:0.6 is the 2017 paper's, average:1 a mean",
        )
    return Penalty(5.0 if match[1] == "gnmt" else 0.0, float(match[2]))
