"""The model's own scores of given translations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from nmt.batches.batch import collate
from nmt.corpus.lines import is_blank
from nmt.model.seq2seq import Stepper
from nmt.search.batching import batches
from nmt.search.company import alone, apart, widest
from nmt.search.control.config import ControlConfig
from nmt.search.control.request import Request
from nmt.search.follow import follow
from nmt.search.force import force
from nmt.search.length import Penalty
from nmt.search.threads import one_thread, side_by_side
from nmt.search.translation import Candidate

if TYPE_CHECKING:
    from nmt.search.translate import Translator

Pair = tuple[Sequence[int], Sequence[int]]
"""The ids of a source and of a target, without marks."""

LONGEST = 8192
"""Tokens of a side that count at most: attention's memory grows with their square, and a line must not end a job."""


def rescored(
    model: Translator,
    requests: Sequence[Request],
    tags: Sequence[list[int]],
    targets: Sequence[str],
    settings: ControlConfig,
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
    sides = [([*source_ids[i][:longest]], [*target_ids[i][:longest]]) for i in order]
    gains = dict(zip(order, _gains(model, sides, settings), strict=True))
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


def _gains(model: Translator, pairs: Sequence[Pair], settings: ControlConfig) -> list[list[float]]:
    """The log-probabilities of each pair's target tokens and end mark; longest pairs first."""

    def length(i: int) -> int:
        return max(map(len, pairs[i])) + 1

    found: dict[int, list[float]] = {}
    if model.device.type != "cpu":
        for rows in batches(range(len(pairs)), length, settings.batch_tokens, len(pairs)):
            found |= zip(rows, _forced(model, [pairs[i] for i in rows]), strict=True)
        return [found[i] for i in range(len(pairs))]
    stepper = model.solver.scorer(settings.precision)

    def score(rows: Sequence[int]) -> None:
        found.update(zip(rows, _followed(model, stepper, [pairs[i] for i in rows]), strict=True))

    places, most = apart(stepper), widest(stepper, model.device, 1)
    alike: dict[int, list[int]] = {}
    for i, (source, _) in enumerate(pairs):
        alike.setdefault(places(len(source) + 1), []).append(i)
    jobs = [rows for group in alike.values() for rows in batches(group, length, settings.batch_tokens, most)]
    side_by_side(score, jobs, settings.workers)
    return [found[i] for i in range(len(pairs))]


def _forced(model: Translator, pairs: Sequence[Pair]) -> list[list[float]]:
    """Those of one batch, all at once."""
    marks = model.target_vocabulary
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    batch = collate(sources, targets, bos=marks.bos, eos=marks.eos, pad=marks.pad)
    return force(model.model, batch.to(model.device), marks.pad)


def _followed(model: Translator, stepper: Stepper, pairs: Sequence[Pair]) -> list[list[float]]:
    """The same by the steps of search."""
    marks, encoded = model.target_vocabulary, model.solver.sources([source for source, _ in pairs])
    with one_thread() if alone(stepper, model.device) else nullcontext():
        followed = follow(stepper, *encoded, [[target] for _, target in pairs], bos=marks.bos, eos=marks.eos)
    return [one.gains for (one,) in followed]
