"""The model's own scores of given translations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmt.batches.batch import collate
from nmt.corpus.lines import is_blank
from nmt.search.batching import batches
from nmt.search.config import SearchConfig
from nmt.search.control.request import Request
from nmt.search.force import force
from nmt.search.length import Penalty
from nmt.search.translation import Candidate

if TYPE_CHECKING:
    from nmt.search.translate import Translator

LONGEST = 8192
"""Tokens of a side that count at most: attention's memory grows with their square, and a line must not end a job."""


def rescored(
    model: Translator,
    requests: Sequence[Request],
    tags: Sequence[list[int]],
    targets: Sequence[str],
    settings: SearchConfig,
    penalty: Penalty,
    longest: int = LONGEST,
) -> list[Candidate]:
    """The score of each target as the translation of its request's source, before which stand `tags` and its context.

    Long sources are read as a whole. Of a side, `longest` tokens count, or as many as the model has positions for.
    """
    source_ids = model.source_vocabulary.encode_many([model.source_cleaner.clean(one.source) for one in requests])
    most = (settings.max_source_tokens or model.max_source_tokens) - 1
    own_lengths = [len(tag) + len(ids) + 1 for tag, ids in zip(tags, source_ids, strict=True)]
    source_ids = model.context.led(requests, source_ids, tags, most)
    target_ids = model.target_vocabulary.encode_many([model.target_cleaner.clean(target) for target in targets])
    longest = min(longest, (model.positions or longest + 1) - 1)
    lengths = [min(max(map(len, both)), longest) for both in zip(source_ids, target_ids, strict=True)]
    order = sorted(range(len(targets)), key=lambda i: -lengths[i])
    order = [i for i in order if not (is_blank(requests[i].source) and is_blank(targets[i]))]
    vocabulary = model.target_vocabulary
    gains: dict[int, list[float]] = {}
    for rows in batches(order, lambda i: lengths[i] + 1, settings.batch_tokens, len(order)):
        batch = collate(
            [source_ids[i][:longest] for i in rows],
            [target_ids[i][:longest] for i in rows],
            bos=vocabulary.bos,
            eos=vocabulary.eos,
            pad=vocabulary.pad,
        )
        gains.update(zip(rows, force(model.model, batch.to(model.device), vocabulary.pad), strict=True))
    found = []
    for i, target in enumerate(targets):
        if i not in gains:
            found.append(Candidate(target, 0.0, 0.0, source_length=own_lengths[i]))
            continue
        total = math.fsum(gains[i])
        whole = max(len(target_ids[i]), len(source_ids[i])) <= longest
        tokens, score = vocabulary.names(target_ids[i]), penalty.score(total, len(gains[i]))
        one = Candidate(target, score, total, tokens, tuple(gains[i]), whole, source_length=own_lengths[i])
        found.append(one)
    return found
