"""Word alignments of given pairs by cross-attention, layer by layer, and their error against gold ones.

B batch · L layers · T target · S source
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from nmt.batches.batch import Batch, collate
from nmt.corpus.lines import is_blank
from nmt.errors import DataError, ModelError
from nmt.events import Caution, Event, Progress
from nmt.model.attention.core import Attention
from nmt.model.seq2seq import Seq2Seq
from nmt.score.alignment import AlignmentScore, Gold, alignment_score
from nmt.search.align import Pairs, Words, aligned, recorded
from nmt.search.batching import batches
from nmt.search.control.request import Request
from nmt.search.translate import Translator
from nmt.wording import counted

BATCH_TOKENS = 2048


@dataclass(frozen=True)
class Alignments(Event):
    """The result: for each layer of the decoder, the links of each pair in order, none where it was left out."""

    layers: tuple[tuple[Pairs, ...], ...]
    usual: int
    """The layer, from 0, that translations are aligned by: the last but one."""

    def scores(self, gold: Sequence[Gold]) -> tuple[AlignmentScore, ...]:
        """The agreement of each layer with gold links. Raises DataError as `alignment_score` does."""
        return tuple(alignment_score(links, gold) for links in self.layers)


def align(translator: Translator, sources: Sequence[str | Request], targets: Sequence[str]) -> Iterator[Event]:
    """Link each word of every target with the source word that the step writing it looks at most, over all heads.

    Words are what white space parts. Yields Progress, perhaps a Caution, and at last Alignments. A pair with a blank
    side, or with more tokens than the model takes at once, has no links. Raises DataError when the counts differ,
    ModelError for a model without attention to its source. Of a Request, source and context count.
    """
    if len(sources) != len(targets):
        raise DataError(
            f"--source has {counted(len(sources), 'line')}, --target {len(targets):,}; they are pairs by line number",
            "give two files with one line for each pair",
        )
    modules = crossing(translator.model)
    ready = _Ready(translator, sources, targets)
    texts = {i for i, pair in enumerate(zip(ready.sources, targets, strict=True)) if not any(map(is_blank, pair))}
    kept = sorted((i for i in texts if ready.fits(i)), key=lambda i: -ready.length(i))
    if left := len(texts) - len(kept):
        yield Caution(f"{counted(left, 'pair has', 'pairs have')} no links: a side is too long for the model")
    links: list[list[Pairs]] = [[()] * len(sources) for _ in modules]
    done = 0
    most = 1 if translator.device.type == "cpu" else max(len(kept), 1)  # where a near tie is no matter of company
    for rows in batches(kept, ready.length, BATCH_TOKENS, most):
        looked_LBTS = _looked(translator.model, modules, ready.batch(rows)).cpu()
        for place, i in enumerate(rows):
            for layer, pairs in enumerate(ready.links(i, looked_LBTS[:, place])):
                links[layer][i] = pairs
        done += len(rows)
        yield Progress("align", done, len(kept), "pairs")
    yield Alignments(tuple(map(tuple, links)), max(len(modules) - 2, 0))


class _Ready:
    """Pairs of sentences as the model reads them."""

    def __init__(self, translator: Translator, sources: Sequence[str | Request], targets: Sequence[str]) -> None:
        requests, most = translator.context.followed(sources), translator.max_source_tokens - 1
        self.translator, self.sources, self.targets = translator, [one.source for one in requests], targets
        clean = translator.source_cleaner.clean, translator.target_cleaner.clean
        self.source_ids = translator.source_vocabulary.encode_many(map(clean[0], self.sources))
        self.read_ids = translator.context.led(requests, self.source_ids, [translator.tags.lead()] * len(sources), most)
        self.target_ids = translator.target_vocabulary.encode_many(map(clean[1], targets))

    def lengths(self, i: int) -> tuple[int, int]:
        """The tokens of both sides, end marks counted."""
        return len(self.read_ids[i]) + 1, len(self.target_ids[i]) + 1

    def length(self, i: int) -> int:
        """The tokens of the longer side."""
        return max(self.lengths(i))

    def fits(self, i: int) -> bool:
        """Whether the model takes the pair at once."""
        source, target = self.lengths(i)
        return source <= self.translator.max_source_tokens and target <= (self.translator.positions or math.inf)

    def batch(self, rows: Sequence[int]) -> Batch:
        """These pairs, on the model's device."""
        vocabulary = self.translator.target_vocabulary
        sources, targets = [self.read_ids[i] for i in rows], [self.target_ids[i] for i in rows]
        batch = collate(sources, targets, bos=vocabulary.bos, eos=vocabulary.eos, pad=vocabulary.pad)
        return batch.to(self.translator.device)

    def links(self, i: int, looked_LTS: Tensor) -> list[Pairs]:
        """The links of a pair in each layer, by the weights of its row of a batch."""
        source_ids, target_ids = self.source_ids[i], self.target_ids[i]
        lead = len(self.read_ids[i]) - len(source_ids)
        source = Words(self.sources[i], [source_ids], self.translator.source_vocabulary)
        target = Words(self.targets[i], [target_ids], self.translator.target_vocabulary)
        maps_LTS = looked_LTS[:, : len(target_ids), lead : lead + len(source_ids)]
        return [aligned([map_TS], source, target) for map_TS in maps_LTS]


def crossing(model: Seq2Seq) -> list[Attention]:
    """The model's attention to its source, layer by layer. Raises ModelError where it has none."""
    found = [module for name, module in model.named_modules() if name.endswith("cross_attention")]
    modules = [module for module in found if isinstance(module, Attention)]
    if not modules:
        raise ModelError(
            f"a {type(model).__name__} has no attention to its source, so it cannot align words",
            "take a model of another kind",
        )
    return modules


def _looked(model: Seq2Seq, modules: Sequence[Attention], batch: Batch) -> Tensor:
    """The weights of each layer, mean over its heads; without dropout and gradients, the model left as it was."""
    training = model.training
    model.eval()
    try:
        with torch.inference_mode(), ExitStack() as stack:
            notes = [stack.enter_context(recorded(module)) for module in modules]
            model(batch.src_BS, batch.keep_BS, batch.tgt_BT)
    finally:
        model.train(training)
    return torch.stack([kept[0] for kept in notes])


def pharaoh(links: Pairs) -> str:
    """``0-0 1-2``."""
    return " ".join(f"{i}-{j}" for i, j in links)


TITLES = ("layer", "AER", "precision", "recall", "links", "sure", "possible")


def table(found: Alignments, scores: Sequence[AlignmentScore]) -> list[tuple[str, ...]]:
    """Titles, then a row for each layer, from 1, in percent; a star marks `usual`."""
    rows: list[tuple[str, ...]] = [TITLES]
    for layer, one in enumerate(scores):
        shares = (f"{100 * share:.2f}" for share in (one.error, one.precision, one.recall))
        counts = (str(count) for count in (one.links, one.sure, one.possible))
        rows.append((f"{layer + 1}{'*' if layer == found.usual else ''}", *shares, *counts))
    return rows


def as_json(found: Alignments, scores: Sequence[AlignmentScore] | None) -> dict[str, Any]:
    """The links of every layer, counted from 0, and the scores unrounded where there are gold links."""
    data: dict[str, Any] = {"usual_layer": found.usual, "links": found.layers}
    return data if scores is None else {**data, "scores": [asdict(one) for one in scores]}
