"""What heads are worth: measures of each, and how the loss changes without it (Michel et al. 2019).

B batch · H heads · Q queries · K keys · E width of a head
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.analysis.capture import KINDS, Kind, Mix, Place, capture, places, swapped
from nmt.analysis.measures import Measures, Pieces, fresh, tally
from nmt.batches.batch import Batch, collate
from nmt.corpus.lines import is_blank
from nmt.errors import DataError
from nmt.events import Caution, Event, Progress
from nmt.search.batching import batches
from nmt.search.force import force
from nmt.search.translate import Translator
from nmt.wording import counted

BATCH_TOKENS = 2048


@dataclass(frozen=True)
class Head:
    """One head, by numbers from 0."""

    kind: Kind
    layer: int
    head: int
    measures: Measures
    uniform: Measures
    """Of weights that are all alike, at the same offset."""
    importance: float
    """How much the loss rises when this head gives nothing, in nats a target token; negative where it falls."""


@dataclass(frozen=True)
class Studied(Event):
    """The result: every head of the model."""

    heads: tuple[Head, ...]
    loss: float
    """−log p a target token, end marks counted, of the whole model."""
    pairs: int
    tokens: int


def study(translator: Translator, sources: Sequence[str], targets: Sequence[str]) -> Iterator[Event]:
    """Measure every head on these pairs, then switch each off by itself; yields Progress and at last Studied.

    Pairs with a blank side, or with more tokens than the model takes at once, are left out, with a Caution.
    Raises DataError when the counts differ or nothing is left.
    """
    model = translator.model
    ready, pairs = _batches(translator, sources, targets)
    if pairs < len(sources):
        left = counted(len(sources) - pairs, "pair was", "pairs were")
        yield Caution(f"{left} left out: a side is blank or too long for the model")
    totals, pieces = fresh(KINDS), Pieces.of(translator.source_vocabulary, translator.target_vocabulary)
    where = places(model)
    heads = [(place, head) for place in where for head in range(place.module.heads)]
    for batch in ready:
        weights = capture(model, batch.to(translator.device))
        tally(totals, {kind: found.cpu() for kind, found in weights.items()}, batch, pieces)
    base, tokens = _loss(translator, ready), sum(batch.tokens for batch in ready)
    studied = []
    for done, (place, head) in enumerate(heads, 1):
        with without(place, head):
            importance = _loss(translator, ready) - base
        measures = totals[place.kind].of_head(place.layer, head)
        uniform = totals[place.kind].of_uniform(measures)
        studied.append(Head(place.kind, place.layer, head, measures, uniform, importance))
        yield Progress("heads", done, len(heads), "heads")
    order = {kind: i for i, kind in enumerate(KINDS)}
    studied.sort(key=lambda one: (order[one.kind], one.layer, one.head))
    yield Studied(tuple(studied), base, pairs, tokens)


def without(place: Place, head: int) -> AbstractContextManager[None]:
    """While the block runs, this head gives zeros in place of its mixture of values."""

    def make(_: Place, mix: Mix) -> Mix:
        def silenced(q_BHQE: Tensor, k_BHKE: Tensor, v_BHKE: Tensor, bias_BHQK: Tensor | None) -> Tensor:
            mixed_BHQE = mix(q_BHQE, k_BHKE, v_BHKE, bias_BHQK).clone()
            mixed_BHQE[:, head] = 0
            return mixed_BHQE

        return silenced

    return swapped([place], make)


def _batches(translator: Translator, sources: Sequence[str], targets: Sequence[str]) -> tuple[list[Batch], int]:
    """The pairs that can be measured, as batches on the CPU, and their number."""
    if len(sources) != len(targets):
        raise DataError(
            f"--source has {counted(len(sources), 'line')}, --target {len(targets):,}; they are pairs by line number",
            "give two files with one line for each pair",
        )
    vocabulary = translator.target_vocabulary
    lead = translator.tags.lead()
    source_ids = translator.source_vocabulary.encode_many(map(translator.source_cleaner.clean, sources))
    source_ids = translator.context.led(
        translator.context.followed(sources), source_ids, [lead] * len(sources), translator.max_source_tokens - 1
    )
    target_ids = vocabulary.encode_many(map(translator.target_cleaner.clean, targets))
    longest = translator.max_source_tokens, translator.positions or math.inf
    kept = [
        (one, other)
        for one, other, *texts in zip(source_ids, target_ids, sources, targets, strict=True)
        if len(one) < longest[0] and len(other) < longest[1] and not any(map(is_blank, texts))
    ]
    if not kept:
        raise DataError("no pair is left to measure heads on", "give text with lines that are not blank")
    kept.sort(key=lambda pair: -max(map(len, pair)))
    groups = batches(kept, lambda pair: max(map(len, pair)) + 1, BATCH_TOKENS, len(kept))
    marks = {"bos": vocabulary.bos, "eos": vocabulary.eos, "pad": vocabulary.pad}
    return [collate([s for s, _ in group], [t for _, t in group], **marks) for group in groups], len(kept)


def _loss(translator: Translator, ready: Sequence[Batch]) -> float:
    """−log p a target token, the end mark counted."""
    model, training = translator.model, translator.model.training
    model.eval()
    try:
        with torch.inference_mode():
            gains = [force(model, batch.to(translator.device), translator.target_vocabulary.pad) for batch in ready]
    finally:
        model.train(training)
    return -math.fsum(gain for batch in gains for row in batch for gain in row) / sum(b.tokens for b in ready)
