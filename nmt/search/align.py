"""Which source word each word of a translation comes from, by the decoder's attention to the source.

B batch · T target · S source
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import SequenceMatcher

import torch
from torch import Tensor

from nmt.batches.batch import Batch
from nmt.errors import NmtError
from nmt.model.attention.core import Attention
from nmt.model.ensemble import Ensemble
from nmt.model.seq2seq import Seq2Seq
from nmt.subwords.escape import ESCAPE
from nmt.subwords.vocabulary import Vocabulary

_OPEN = ("\ufffd", ESCAPE)
"""What the text of some pieces ends with where the next one may still change it."""

Pairs = tuple[tuple[int, int], ...]
"""Source word and target word, from 0."""


def attention_BTS(model: Seq2Seq, batch: Batch) -> Tensor:
    """How much each target token of `batch`, end mark included, looks at each source token.

    Mean over the heads of the last layer but one, whose attention is the most like an alignment (Garg et al. 2019),
    and over the models of an ensemble. A token's row is that of the step that writes it. Raises NmtError for a model
    that does not attend to its source.
    """
    models = list(model.models) if isinstance(model, Ensemble) else [model]
    seen = []
    for one in models:
        crossing = [module for name, module in one.named_modules() if name.endswith("cross_attention")]
        if not crossing or not isinstance(chosen := crossing[max(len(crossing) - 2, 0)], Attention):
            raise NmtError("this model has no attention to its source, so it cannot tell alignments", "leave them out")
        with recorded(chosen) as weights:
            one(batch.src_BS, batch.keep_BS, batch.tgt_BT)
        seen += weights
    return torch.stack(seen).mean(0)


@contextmanager
def recorded(attention: Attention) -> Iterator[list[Tensor]]:
    """The weights, mean over heads, of every call of `attention` while this lasts."""
    seen: list[Tensor] = []
    mix = attention.mix

    def record(q_BHQE: Tensor, k_BHKE: Tensor, v_BHKE: Tensor, bias_BHQK: Tensor | None) -> Tensor:
        seen.append(attention.weights(q_BHQE, k_BHKE, bias_BHQK).float().mean(1))
        return mix(q_BHQE, k_BHKE, v_BHKE, bias_BHQK)

    attention.mix = record  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        del attention.mix  # the class's own again


class Words:
    """The words of a line, and which of them each piece of its parts belongs to.

    Words are what white space parts, or lie between the places that `spans` tells, which leave out white space only.
    """

    def __init__(
        self,
        text: str,
        parts: Sequence[Sequence[int]],
        vocabulary: Vocabulary,
        spans: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        words = text.split() if spans is None else [text[start:end] for start, end in spans]
        self.count = len(words)
        word_of_character = [i for i, word in enumerate(words) for _ in word]
        letters, places = "", []
        for ids in parts:
            found, characters = _places(ids, vocabulary)
            places.append([len(letters) + place for place in found])
            letters += characters
        nearest = _nearest(letters, "".join(text.split()))
        self.of = [[_word(place, nearest, word_of_character) for place in part] for part in places]
        """Of each part, the word of each piece; -1 where there are no words."""


def _word(place: int, nearest: Sequence[int], words: Sequence[int]) -> int:
    if not words or not nearest:
        return -1
    return words[nearest[min(place, len(nearest) - 1)]]


def _places(ids: Sequence[int], vocabulary: Vocabulary) -> tuple[list[int], str]:
    """For each piece, the place of its last letter among all that are no spaces, and these letters.

    A piece that completes no letter, being a space or the first bytes of one, goes with the letter after it.
    """
    places, first, base, before = list[int](), 0, 0, 0
    for i, _ in enumerate(ids):
        text = vocabulary.decode(ids[first : i + 1])
        letters = len("".join(text.rstrip("\ufffd").split()))
        places.append(base + letters - (letters > before))
        before = letters
        if not text.endswith(_OPEN):
            first, base, before = i + 1, base + letters, 0
    return places, "".join(vocabulary.decode(ids).split())


def _nearest(letters: str, text: str) -> list[int]:
    """For each of `letters`, its place in `text`, which may differ by normal form or a tokenizer's escapes."""
    if letters == text:
        return list(range(len(text)))
    nearest = [-1] * len(letters)
    for block in SequenceMatcher(None, letters, text, autojunk=False).get_matching_blocks():
        nearest[block.a : block.a + block.size] = range(block.b, block.b + block.size)
    last = 0
    for i, place in enumerate(nearest):
        last = nearest[i] = place if place >= 0 else last
    return nearest if text else []


def aligned(maps: Sequence[Tensor], source: Words, target: Words) -> Pairs:
    """For each target word the source word that its pieces look at most; `maps` holds a part's attention each."""
    if not source.count or not target.count:
        return ()
    weights = torch.zeros(target.count, source.count)
    for map_TS, source_words, target_words in zip(maps, source.of, target.of, strict=True):
        rows = torch.tensor(target_words, dtype=torch.long)
        columns = torch.tensor(source_words, dtype=torch.long)
        looked_TW = torch.zeros(len(rows), source.count).index_add_(1, columns, map_TS[: len(rows), : len(columns)])
        weights.index_add_(0, rows, looked_TW)
    best = weights.argmax(1).tolist()
    return tuple(sorted((i, j) for j, i in enumerate(best) if weights[j, i] > 0))
