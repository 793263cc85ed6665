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


def rescored(
    model: Translator,
    requests: Sequence[Request],
    tags: Sequence[list[int]],
    targets: Sequence[str],
    settings: SearchConfig,
    penalty: Penalty,
) -> list[Candidate]:
    """The score of each target as the translation of its request's source, before which stand `tags` and its context.

    Only as much counts as the model has positions for.
    """
    source_ids = model.source_vocabulary.encode_many([model.source_cleaner.clean(one.source) for one in requests])
    most = (settings.max_source_tokens or model.max_source_tokens) - 1
    source_ids = model.context.led(requests, source_ids, tags, most)
    target_ids = model.target_vocabulary.encode_many([model.target_cleaner.clean(target) for target in targets])
    longest = None if model.positions is None else model.positions - 1
    lengths = [max(map(len, both)) for both in zip(source_ids, target_ids, strict=True)]
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
            found.append(Candidate(target, 0.0, 0.0))
            continue
        total = math.fsum(gains[i])
        whole = len(gains[i]) == len(target_ids[i]) + 1 and (longest is None or len(source_ids[i]) <= longest)
        tokens = tuple(map(vocabulary.piece, target_ids[i]))
        found.append(Candidate(target, penalty.score(total, len(gains[i])), total, tokens, tuple(gains[i]), whole))
    return found
