"""From what lines ask for to the constraints of their batch; None where nobody asks for anything."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from nmt.search.control.core import Constraint, Constraints
from nmt.search.control.forbid import Forbidden
from nmt.search.control.fusion import Fusion
from nmt.search.control.length import MinLength
from nmt.search.control.repeat import NoRepeat, RepetitionPenalty
from nmt.search.control.shortlist import Shortlist
from nmt.search.part import Part


def constraints_of(parts: Sequence[Part], bos: int, eos: int, device: torch.device) -> Constraints | None:
    """One set of constraints for all `parts`, each part with its own."""
    found: list[Constraint] = []
    if any(part.lm is not None and part.settings.lm_weight for part in parts):
        found.append(Fusion([part.lm for part in parts], [part.settings.lm_weight for part in parts], bos, device))
    if any(part.shortlist is not None for part in parts):
        found.append(Shortlist([_allowed(part) for part in parts], device))
    if any(part.settings.repetition_penalty != 1 for part in parts):
        found.append(RepetitionPenalty([part.settings.repetition_penalty for part in parts], device))
    if any(part.settings.no_repeat_ngram for part in parts):
        found.append(NoRepeat([part.settings.no_repeat_ngram for part in parts]))
    if any(part.least for part in parts):
        found.append(MinLength([part.least for part in parts], eos))
    if any(part.forbidden for part in parts):
        found.append(Forbidden([part.forbidden for part in parts]))
    prefixes = [part.prefix for part in parts]
    return Constraints(found, prefixes, eos) if found or any(prefixes) else None


def _allowed(part: Part) -> frozenset[int] | None:
    """The shortlist of `part`, with what is required of it."""
    if part.shortlist is None:
        return None
    return part.shortlist.allowed(part.text_ids).union(*part.required)
