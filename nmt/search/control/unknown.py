"""Unknown words carried over: the source word that an unknown token looks at stands in its place.

T target · S source
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from nmt.search.hypothesis import Hypothesis
from nmt.search.part import Part
from nmt.subwords.vocabulary import Vocabulary

_SPACE = "\u2581"


def give_surfaces(parts: Sequence[Part], pieces: Sequence[str], vocabulary: Vocabulary) -> None:
    """Tell `parts` of a line how their tokens are written there, where `pieces` are those of the whole line.

    Known tokens are their pieces, unknown ones those of the line in their order. Where splitting has cut a run of
    unknown characters, so that there are more of them, the last ones have no text.
    """
    known = {vocabulary.piece(id) for part in parts for id in part.text_ids if id != vocabulary.unk}
    unknown = iter([piece for piece in pieces if piece not in known])
    for part in parts:
        part.surfaces = tuple(
            next(unknown, "") if id == vocabulary.unk else vocabulary.piece(id) for id in part.text_ids
        )


def carried_over(
    found: Hypothesis, map_TS: Tensor, surfaces: Sequence[str], unknown: Sequence[bool], vocabulary: Vocabulary
) -> Hypothesis:
    """`found`, its unknown tokens read as source text, by how much each looks at each source token.

    `surfaces` are the source's pieces as they are written, `unknown` says which of them the vocabulary lacks. An
    unknown token takes the unknown source piece that it looks at most, one that no other has taken if there is any;
    without any unknown in the source, the whole word.
    """
    if vocabulary.unk not in found.ids or not surfaces:
        return found
    own = {i for i, is_unknown in enumerate(unknown) if is_unknown}
    free = set(own)
    pieces = []
    for token, look_S in zip(found.ids, map_TS.tolist(), strict=True):
        if token != vocabulary.unk:
            pieces.append(vocabulary.piece(token))
            continue
        chosen = max(free or own or range(len(surfaces)), key=lambda i: (look_S[i], -i))
        free.discard(chosen)
        pieces.append(surfaces[chosen] if own else _word_around(chosen, surfaces))
    return replace(found, pieces=tuple(pieces))


def _word_around(place: int, surfaces: Sequence[str]) -> str:
    """The whole word that the piece at `place` belongs to, without the space before it."""
    first = place
    while first > 0 and not surfaces[first].startswith(_SPACE):
        first -= 1
    last = place + 1
    while last < len(surfaces) and not surfaces[last].startswith(_SPACE):
        last += 1
    return "".join(surfaces[first:last]).strip(_SPACE)
