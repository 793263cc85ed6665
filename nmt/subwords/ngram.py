"""N-gram language models over subword pieces: estimated, and read and written as ARPA files.

An ARPA file lists n-grams with the base-10 logarithms of their probability and of the weight that shorter n-grams get
after them. Programs such as KenLM's lmplz make the same files from what `nmt encode` writes.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.corpus.lines import read_lines
from nmt.errors import DataError
from nmt.subwords.vocabulary import BOS, EOS, PAD, UNK

Gram = tuple[int, ...]
_LN10 = math.log(10)
_NEVER = -100 * _LN10  # what a word gets that the model knows nothing of, if it has no <unk>


class NgramModel:
    """Log-probabilities, in nats, of the next id after any ids."""

    def __init__(self, size: int) -> None:
        """A model of `size` ids that knows nothing yet."""
        self.order = 1
        self.unigram_V: NDArray[np.float32] = np.full(size, np.nan, np.float32)
        self.backoff: dict[Gram, float] = {}
        self.follow: dict[Gram, tuple[NDArray[np.int64], NDArray[np.float32]]] = {}
        """After a context: the ids that were seen there, with their log-probabilities."""

    @classmethod
    def read(cls, path: Path | str, pieces: Sequence[str]) -> NgramModel:
        """From an ARPA file whose words are `pieces`, the place of each being its id.

        Words that are no pieces are left out, and pieces that are no words get what `<unk>` has. Raises DataError
        naming the line that is none of the format's, and for a file of words rather than pieces.
        """
        model = cls(len(pieces))
        number_of = {piece: i for i, piece in enumerate(pieces)}
        seen: dict[Gram, tuple[list[int], list[float]]] = defaultdict(lambda: ([], []))
        strange = 0
        for words, value, backoff in _entries(path):
            gram = tuple(number_of.get(word, -1) for word in words)
            if -1 in gram:
                strange += len(gram) == 1
                continue
            if backoff:
                model.backoff[gram] = backoff
            if len(gram) == 1:
                model.unigram_V[gram[0]] = value
            else:
                ids, values = seen[gram[:-1]]
                ids.append(gram[-1])
                values.append(value)
                model.order = max(model.order, len(gram))
        known = int(np.isfinite(model.unigram_V).sum())
        if strange > known:
            raise DataError(
                f"{path}: {strange:,} of its {strange + known:,} words are no pieces of the model's target vocabulary",
                "make it of the model's own pieces: nmt lm MODEL < text > lm.arpa",
            )
        model.follow = {
            context: (np.array(ids, np.int64), np.array(values, np.float32)) for context, (ids, values) in seen.items()
        }
        unknown = model.unigram_V[UNK] if np.isfinite(model.unigram_V[UNK]) else _NEVER
        model.unigram_V[np.isnan(model.unigram_V)] = unknown
        return model

    def after(self, context: Gram) -> tuple[float, list[tuple[NDArray[np.int64], NDArray[np.float32]]]]:
        """What is to be added to `unigram_V` after `context`, and which ids then have other values, later ones last."""
        context = context[max(len(context) - self.order + 1, 0) :]
        contexts = [context[i:] for i in reversed(range(len(context)))]
        left = [0.0]
        for longer in reversed(contexts):
            left.append(left[-1] + self.backoff.get(longer, 0.0))
        rest = left[-2::-1]  # of each context, the weights of those longer than it
        values = [
            (self.follow[context][0], self.follow[context][1] + np.float32(weight))
            for context, weight in zip(contexts, rest, strict=True)
            if context in self.follow
        ]
        return left[-1], values

    def log_probs(self, context: Gram) -> NDArray[np.float32]:
        """The log-probability of every id after `context`, which begins with the begin mark if a sentence does."""
        weight, values = self.after(context)
        log_probs_V = self.unigram_V + np.float32(weight)
        for ids, own in values:
            log_probs_V[ids] = own
        return log_probs_V


def _entries(path: Path | str) -> Iterator[tuple[list[str], float, float]]:
    """The n-grams of an ARPA file: words, log-probability and weight of what is shorter, both natural."""
    order, begun = 0, False
    for number, line in enumerate(read_lines(path), 1):
        line = line.rstrip(" \t")
        if heading := re.fullmatch(r"\\(\d+)-grams:", line):
            order = int(heading[1])
        elif line == "\\end\\":
            return
        elif line.startswith("\\data\\"):
            begun = True
        elif order and line:
            yield _entry(line, order, f"{path}:{number}")
        elif line and not begun:
            break
    raise DataError(f"{path}: is no ARPA file, or is cut: it has no \\data\\ or no \\end\\", "nmt lm MODEL makes one")


def _entry(line: str, order: int, place: str) -> tuple[list[str], float, float]:
    parts = re.split(r"[ \t]+", line)
    try:
        if len(parts) not in {order + 1, order + 2}:
            raise ValueError
        value, backoff = float(parts[0]), float(parts[order + 1]) if len(parts) == order + 2 else 0.0
    except ValueError:
        raise DataError(f"{place}: is no {order}-gram", "each is: log10 probability, words, log10 weight") from None
    return parts[1 : order + 1], min(value * _LN10, 0.0), backoff * _LN10


def estimate(sentences: Iterable[Sequence[int]], pieces: Sequence[str], order: int) -> Iterator[str]:
    """The lines of an ARPA file: interpolated Kneser-Ney, one discount for each order (Chen & Goodman 1999)."""
    counts: list[Counter[Gram]] = [Counter() for _ in range(order)]
    apart = {i for i, piece in enumerate(pieces) if re.search(r"[ \t]", piece)}  # no words of an ARPA file
    for ids in sentences:
        marked = (BOS, *(UNK if i in apart else i for i in ids), EOS)
        for n in range(1, order + 1):
            counts[n - 1].update(marked[i : i + n] for i in range(len(marked) - n + 1))
    counts = [_continued(lower, higher) for lower, higher in zip(counts, [*counts[1:], None], strict=True)]
    del counts[0][BOS,]
    probability: dict[Gram, float] = {}
    known = [i for i in range(len(pieces)) if i not in {PAD, BOS, *apart}]
    yield from ("\\data\\", f"ngram 1={len(known) + 1}", *(f"ngram {n}={len(c)}" for n, c in enumerate(counts[1:], 2)))
    left = [_left(c) for c in counts]
    flat = left[0].get((), 1.0) / len(known)
    discounts = [_discount(c) for c in counts]
    totals = [_totals(c) for c in counts]
    for n, own in enumerate(counts, 1):
        yield from ("", f"\\{n}-grams:")
        if n == 1:
            probability = {(i,): flat for i in known}
            grams: Iterable[Gram] = [(BOS,), *probability]
        else:
            grams = own
        for gram in grams:
            if own[gram]:
                seen = (own[gram] - discounts[n - 1]) / totals[n - 1][gram[:-1]]
                shorter = flat if n == 1 else left[n - 1][gram[:-1]] * probability[gram[1:]]
                probability[gram] = seen + shorter
            value = math.log10(probability[gram]) if gram != (BOS,) else -99.0
            weight = left[n].get(gram, 1.0) if n < order else 1.0
            end = f"\t{math.log10(weight):.6f}" if weight != 1.0 else ""
            yield f"{value:.6f}\t{' '.join(pieces[i] for i in gram)}{end}"
    yield from ("", "\\end\\")


def _continued(lower: Counter[Gram], higher: Counter[Gram] | None) -> Counter[Gram]:
    """How many ids stand before each n-gram; how often it occurs, where it begins a sentence or is longest."""
    if higher is None:
        return lower
    before: Counter[Gram] = Counter(gram[1:] for gram in higher)
    return Counter({gram: count if gram[0] == BOS else before[gram] for gram, count in lower.items()})


def _discount(counts: Counter[Gram]) -> float:
    once, twice = (sum(count == n for count in counts.values()) for n in (1, 2))
    return once / (once + 2 * twice) if once and twice else 0.5


def _totals(counts: Counter[Gram]) -> Counter[Gram]:
    totals: Counter[Gram] = Counter()
    for gram, count in counts.items():
        totals[gram[:-1]] += count
    return totals


def _left(counts: Counter[Gram]) -> dict[Gram, float]:
    """After each context, the probability that discounting leaves to shorter n-grams."""
    kinds, totals, discount = Counter(gram[:-1] for gram in counts), _totals(counts), _discount(counts)
    return {context: discount * kinds[context] / total for context, total in totals.items()}
