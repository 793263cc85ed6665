"""What a model looks at while it translates one sentence.

L layers · H heads · Q queries · K keys · G groups of them
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from nmt.analysis.capture import KINDS, Kind, capture
from nmt.analysis.words import words
from nmt.batches.batch import collate
from nmt.corpus.lines import is_blank
from nmt.errors import DataError
from nmt.search.control.request import Request
from nmt.search.translate import Translator
from nmt.subwords.vocabulary import Vocabulary

DIGITS = 6  # of weights in JSON: what float32 can tell
Units = Literal["subwords", "words"]


@dataclass(frozen=True)
class Grid:
    """The weights, and names for their rows and columns, which are subwords or words."""

    source: tuple[str, ...]
    """The source and its end mark."""
    read: tuple[str, ...]
    """What the decoder reads at each step: the begin mark, then the target."""
    written: tuple[str, ...]
    """What it writes then: the target, then the end mark."""
    visible: tuple[int, ...]
    """How many columns each row of decoder self-attention may see; those after them are masked."""
    weights: dict[Kind, Tensor]
    """LHQK for each kind, rows and columns as `axes` names them."""

    def axes(self, kind: Kind) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of rows and of columns."""
        if kind == "encoder":
            return self.source, self.source
        return self.written, self.read if kind == "decoder" else self.source


@dataclass(frozen=True)
class Look:
    """A sentence, its translation, and every weight of attention within and between them."""

    source: str
    target: str
    given: bool
    """Whether the target was given; otherwise the model wrote it."""
    subwords: Grid
    words: Grid
    """Weights to a word are the sum over its pieces, those from it the mean: rows still sum to 1."""
    context: tuple[str, ...] = ()
    """The sentences before the source that were read with it, oldest first."""
    lead: int = 0
    """How many subwords of the source's columns are its tag and context, before the sentence itself."""

    def grid(self, units: Units) -> Grid:
        """The weights between subwords, or between words."""
        return self.words if units == "words" else self.subwords


def look(
    translator: Translator, source: str, target: str | None = None, context: Sequence[str] = (), **settings: Any
) -> Look:
    """Every weight for `source` and `target`, which by default is the translation that search finds with `settings`.

    The target is read as if the model were writing it. `context` are the sentences before the source, oldest first;
    the last count, as many as the model reads. Raises DataError for a blank sentence, and where a side has more tokens
    than the model takes at once; SettingsError for context that the model doesn't read.
    """
    if is_blank(source):
        raise DataError("the sentence is blank: there is nothing to look at", "give a sentence")
    own_ids = translator.source_vocabulary.encode(translator.source_cleaner.clean(source))
    tag, most = translator.tags.lead(), translator.max_source_tokens
    _check_length("sentence", len(tag) + len(own_ids) + 1, most)
    request = translator.context.lines().follow(Request(source, context=tuple(context)))
    (source_ids,) = translator.context.led([request], [own_ids], [tag], most - 1)
    given = target is not None
    if target is None:
        best = next(translator.stream([request], **settings)).best
        target, target_ids = best.text, _ids(best.tokens, translator.target_vocabulary)
    else:
        target_ids = translator.target_vocabulary.encode(translator.target_cleaner.clean(target))
        _check_length("target", len(target_ids) + 1, translator.positions)
    weights = weights_of(translator, source_ids, target_ids)
    sides = _Side(source_ids, translator.source_vocabulary), _Side(target_ids, translator.target_vocabulary)
    grids = _subwords(*sides, weights), _words(*sides, weights)
    return Look(source, target, given, *grids, request.context or (), len(source_ids) - len(own_ids))


def weights_of(translator: Translator, source_ids: Sequence[int], target_ids: Sequence[int]) -> dict[Kind, Tensor]:
    """The weights LHQK of one pair of id sequences, on the CPU; begin and end marks are added to them."""
    vocabulary = translator.target_vocabulary
    batch = collate([source_ids], [target_ids], bos=vocabulary.bos, eos=vocabulary.eos, pad=vocabulary.pad)
    found = capture(translator.model, batch.to(translator.device))
    return {kind: weights_LBHQK[:, 0].cpu() for kind, weights_LBHQK in found.items()}


def as_json(look: Look, units: Units = "subwords", **facts: Any) -> str:
    """One JSON object: `facts`, both texts, the names of rows and columns, and weights[kind][layer][head][row][column].

    Weights are rounded to six digits after the point.
    """
    grid = look.grid(units)
    data: dict[str, Any] = {
        **facts,
        "source": look.source,
        **({"context": look.context} if look.context else {}),
        "target": look.target,
        "target_is": "given" if look.given else "translation",
        "units": units,
        "source_tokens": grid.source,
        "read_tokens": grid.read,
        "written_tokens": grid.written,
        "weights": {kind: numbers(grid.weights[kind], DIGITS) for kind in KINDS},
    }
    return json.dumps(data, ensure_ascii=False)


def numbers(x: Tensor, digits: int) -> Any:
    """A tensor as nested lists of rounded numbers."""

    def rounded(value: Any) -> Any:
        return [rounded(inner) for inner in value] if isinstance(value, list) else round(value, digits)

    return rounded(x.tolist())


@dataclass(frozen=True)
class _Side:
    """One side's ids, without marks."""

    ids: Sequence[int]
    vocabulary: Vocabulary

    def pieces(self) -> list[str]:
        return list(self.vocabulary.names(self.ids))

    def marks(self) -> tuple[str, str]:
        """The begin and the end mark."""
        return self.vocabulary.piece(self.vocabulary.bos), self.vocabulary.piece(self.vocabulary.eos)

    def words(self) -> list[range]:
        """The places of each word's pieces; a tag, and what stands between sentences, is a word by itself."""
        pieces, found, first = self.pieces(), list[range](), 0
        for place in [*(i for i, piece in enumerate(pieces) if self._reserved(piece)), len(pieces)]:
            found += (range(first + word.start, first + word.stop) for word in words(pieces[first:place]))
            found += [range(place, place + 1)] if place < len(pieces) else []
            first = place + 1
        return found

    def texts(self) -> list[str]:
        """Each word as readers know it."""
        pieces = self.pieces()
        return [
            pieces[word[0]]
            if self._reserved(pieces[word[0]])
            else self.vocabulary.decode([self.ids[i] for i in word]).strip()
            for word in self.words()
        ]

    def _reserved(self, piece: str) -> bool:
        return piece in self.vocabulary.reserved


def _subwords(source: _Side, target: _Side, weights: dict[Kind, Tensor]) -> Grid:
    pieces, (begin, end) = target.pieces(), target.marks()
    return Grid(
        source=(*source.pieces(), source.marks()[1]),
        read=(begin, *pieces),
        written=(*pieces, end),
        visible=tuple(range(1, len(pieces) + 2)),
        weights=weights,
    )


def _words(source: _Side, target: _Side, weights: dict[Kind, Tensor]) -> Grid:
    """The same with words for rows and columns; a mark is a word by itself."""
    (begin, end), target_words = target.marks(), target.words()
    columns = _with_end(source.words())
    written = _with_end(target_words)
    read = [range(0, 1), *(range(word.start + 1, word.stop + 1) for word in target_words)]
    groups: dict[Kind, tuple[list[range], list[range]]] = {
        "encoder": (columns, columns),
        "decoder": (written, read),
        "cross": (written, columns),
    }
    return Grid(
        source=(*source.texts(), source.marks()[1]),
        read=(begin, *target.texts()),
        written=(*target.texts(), end),
        visible=tuple(sum(group.start < row.stop for group in read) for row in written),
        weights={kind: merged(weights[kind], *groups[kind]) for kind in weights},
    )


def _with_end(groups: list[range]) -> list[range]:
    last = groups[-1].stop if groups else 0
    return [*groups, range(last, last + 1)]


def merged(weights_LHQK: Tensor, rows: Sequence[range], columns: Sequence[range]) -> Tensor:
    """Weights between groups of adjacent queries and keys: summed over keys, averaged over queries."""
    summed = torch.stack([weights_LHQK[..., group.start : group.stop].sum(-1) for group in columns], -1)
    return torch.stack([summed[..., group.start : group.stop, :].mean(-2) for group in rows], -2)


def _ids(pieces: Sequence[str], vocabulary: Vocabulary) -> list[int]:
    """The ids of pieces that search has written."""
    known = {vocabulary.piece(i): i for i in range(len(vocabulary))}
    return [known[piece] for piece in pieces]


def _check_length(name: str, length: int, limit: int | None) -> None:
    if limit is not None and length > limit:
        raise DataError(
            f"the {name} has {length:,} tokens with its end mark; this model takes {limit:,} at once",
            "give a shorter one, or a part of it",
        )
