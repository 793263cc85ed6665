"""Sentences before the one to be translated, read with it: "2-to-1" and more (Tiedemann & Scherrer 2017).

A source with context is a tag if there is one, then the sentences before it, the oldest first and the separator behind
each, then the sentence itself. The first sentence of a document stands alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def context_ids(sentences: Iterable[Sequence[int]], separator: int, room: int) -> list[int]:
    """The ids of the sentences before another, oldest first, `separator` behind each; empty ones are left out.

    At most `room` ids: what is too much is left out at the beginning, where the oldest stands.
    """
    ids = [i for sentence in sentences if sentence for i in (*sentence, separator)]
    first = max(len(ids) - room, 0)
    while first < len(ids) and ids[first] == separator:  # of a sentence that is left out altogether
        first += 1
    return ids[first:]
