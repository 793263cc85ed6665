"""Coverage: translations that look at every source token are preferred (Wu et al. 2016, eq. 14).

T target · S source
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from nmt.search.part import Part

_LEAST = 1e-6  # of a source token's coverage, whose logarithm would otherwise have no bounds


def coverage(map_TS: Tensor) -> float:
    """Σ log min(Σ attention, 1), the outer sum over source tokens, the inner over target tokens; at best 0.

    `map_TS` tells how much each target token looks at each source token; end marks have no place in it.
    """
    return float(map_TS.double().sum(0).clamp(_LEAST, 1).log().sum())


def prefer_covering(part: Part, weight: float) -> None:
    """Add weight × coverage to the scores of the hypotheses of `part`, and put the best first. Maps go along."""
    scored = []
    for found, map_TS in zip(part.hypotheses, part.maps, strict=True):
        bonus = weight * coverage(map_TS)
        scored.append((replace(found, score=found.score + bonus, bonus=found.bonus + bonus), map_TS))
    scored.sort(key=lambda one: -one[0].score)
    part.hypotheses, part.maps = [found for found, _ in scored], [map_TS for _, map_TS in scored]
