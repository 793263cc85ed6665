"""What a model does on held-out pairs: its loss, and the scores of its translations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import torch

from nmt.errors import ModelError
from nmt.model.seq2seq import Seq2Seq
from nmt.score.metric import Metric
from nmt.search.control.request import Request
from nmt.search.translate import Translator
from nmt.train.data import Pairs
from nmt.train.ema import Ema
from nmt.train.loss import sequence_loss
from nmt.train.ranks import Ranks

T = TypeVar("T")
R = TypeVar("R")

ALONE = Ranks()


@dataclass(frozen=True)
class Scores:
    """−log p a target token (unsmoothed), its exponential, and scores of translations where those were asked for."""

    loss: float
    perplexity: float
    bleu: float | None = None
    chrf: float | None = None
    sets: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Where there are several sets, the scores of each; those above are then their means."""

    def by(self, name: str) -> float:
        """The value called loss, bleu or chrf; NaN, which never wins, where it wasn't measured."""
        value = {"loss": self.loss, "bleu": self.bleu, "chrf": self.chrf}[name]
        return math.nan if value is None else value


@dataclass(frozen=True)
class Held:
    """A validation set: raw text on both sides, and what scores its translations."""

    sources: Sequence[str | Request]
    references: Sequence[str]
    metrics: Mapping[str, Metric]
    name: str = ""


class Validator:
    """Measures a model that is being trained, and leaves it, and the random numbers, as they were.

    With `ema` it measures the moving average of the model, which is what checkpoints hold.

    Translations are made from raw text and scored as raw text by what `nmt translate` and `nmt score` use. Each of the
    `ranks` does a share of the work, all at the same time; what comes of it doesn't depend on how many they are.
    """

    def __init__(
        self,
        model: Seq2Seq,
        pairs: Pairs,
        translator: Translator,
        sources: Sequence[str | Request],
        references: Sequence[str],
        metrics: Mapping[str, Metric],
        *,
        beam: int = 1,
        precision: str = "float32",
        sets: Sequence[Held] = (),
        ranks: Ranks = ALONE,
        ema: Ema | None = None,
    ) -> None:
        """`sets`, where given, stand for `sources`, `references` and `metrics`: each is scored by itself."""
        self.model = model
        self.pairs = pairs
        self.translator = translator
        self.sets = sets or [Held(sources, references, metrics)]
        self.beam = beam
        self.precision = precision
        self.ranks = ranks
        self.ema = ema
        self.translations: dict[str, list[str]] = {}
        """What the sets' sources were last translated as, by the sets' names."""

    def __call__(self) -> Scores:
        shown = self.ema.shown() if self.ema else nullcontext()
        with shown, self.ranks.assembled(self.model), evaluating(self.model):
            loss = mean_loss(self.model, self.pairs, self.precision, self.ranks)
            found = [self._scores(held) for held in self.sets]
        names = set.intersection(*map(set, found))
        values = {name: sum(one[name] for one in found) / len(found) for name in names}
        perplexity = math.exp(loss) if loss < 700 else math.inf
        each = {held.name: one for held, one in zip(self.sets, found, strict=True)} if len(found) > 1 else {}
        return Scores(loss, perplexity, values.get("bleu"), values.get("chrf"), each)

    def _scores(self, held: Held) -> dict[str, float]:
        """The values of the set's metrics; none where it is empty, or where predictions of the model are no numbers."""
        if not held.sources or not held.metrics:
            return {}
        found = dealt(held.sources, self._translate, self.ranks)
        hypotheses = self.translations[held.name] = [text or "" for text in found]
        if None in found:
            return {}
        return self.ranks.first(
            lambda: {name: metric.score(hypotheses, [held.references]).value for name, metric in held.metrics.items()}
        )

    def _translate(self, lines: Sequence[str | Request]) -> Sequence[str | None]:
        """No translation of any where predictions are no numbers: training has its own rule for when that ends it."""
        try:
            return self.translator.translate(lines, beam=self.beam)
        except ModelError:
            return [None] * len(lines)


def mean_loss(model: Seq2Seq, pairs: Pairs, precision: str = "float32", ranks: Ranks = ALONE) -> float:
    """−log p a target token over all pairs, in natural logarithms; NaN where there are none."""
    device = model.output_weight_VD.device

    def losses(batches: Sequence[np.ndarray]) -> list[tuple[float, int]]:
        sums, tokens = [], []
        for batch in map(pairs.load, batches):
            here = batch.to(device)
            with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
                x_BTD = model(here.src_BS, here.keep_BS, here.tgt_BT)
                _, nll = sequence_loss(x_BTD, model.output_weight_VD, here.out_BT, smoothing=0.0, pad=pairs.pad)
            sums.append(nll.double())
            tokens.append(batch.tokens)
        return list(zip(torch.stack(sums).tolist() if sums else [], tokens, strict=True))

    found = dealt(
        [rows for group in range(pairs.groups) for update in pairs.updates(0, group) for rows in update], losses, ranks
    )
    total, tokens = sum(nll for nll, _ in found), sum(count for _, count in found)
    return total / tokens if tokens else math.nan


def dealt(items: Sequence[T], work: Callable[[Sequence[T]], Sequence[R]], ranks: Ranks) -> list[R]:
    """What `work` makes of the items, in their order: dealt out among the ranks, and the same in all of them."""
    shares = ranks.gather(work(items[ranks.rank :: ranks.size]))
    return [shares[number % ranks.size][number // ranks.size] for number in range(len(items))]


@contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[None]:
    """The model without dropout and without gradients, then as it was; random numbers drawn meanwhile don't count."""
    was_training = model.training
    device = next(model.parameters()).device
    model.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            yield
    finally:
        model.train(was_training)
