"""How often corpora of unlike sizes come: in proportion to their sizes, evened out by a temperature."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence


def tempered(
    corpora: Sequence[tuple[int, float]], temperature: float, groups: Sequence[Hashable] = ()
) -> list[tuple[int, float]]:
    """(pairs, weight) of each corpus, with weights under which size n counts as n^(1/T) (Arivazhagan et al. 2019).

    A size is pairs times weight. Corpora of one of `groups`, such as a language pair, are one corpus of several parts,
    which stay to each other as they were; without groups each is by itself. An epoch stays as long as it was. T = 1
    changes nothing, a high T makes all groups equal.
    """
    if temperature == 1:
        return list(corpora)
    groups = groups or range(len(corpora))
    sizes: defaultdict[Hashable, float] = defaultdict(float)
    for group, (pairs, weight) in zip(groups, corpora, strict=True):
        sizes[group] += pairs * weight
    powers = {group: size ** (1 / temperature) if size else 0.0 for group, size in sizes.items()}
    scale = sum(sizes.values()) / (sum(powers.values()) or 1.0)
    factors = {group: scale * powers[group] / size if size else 1.0 for group, size in sizes.items()}
    return [(pairs, weight * factors[group]) for group, (pairs, weight) in zip(groups, corpora, strict=True)]
