"""From parts of lines to hypotheses: who shares a batch, and which search each needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch

from nmt.batches.batch import collate, collate_source
from nmt.model.inference.build import Engine
from nmt.model.seq2seq import Seq2Seq, Stepper
from nmt.search.align import attention_BTS
from nmt.search.batching import batches
from nmt.search.beam import search
from nmt.search.config import SearchConfig
from nmt.search.control.build import constraints_of
from nmt.search.control.grid import grid_search
from nmt.search.control.phrases import may_follow
from nmt.search.control.sample import sample
from nmt.search.hypothesis import Hypothesis
from nmt.search.length import Penalty
from nmt.search.part import Part
from nmt.subwords.vocabulary import Vocabulary

_LOGITS = 1 << 25  # most numbers in the logits of one step, so that short sentences don't make endless batches
_WIDEST_GRID = 48  # most hypotheses of a line with required phrases, unless its beam is wider by itself


@dataclass(frozen=True)
class Solver:
    """A model and its two vocabularies."""

    model: Seq2Seq
    source: Vocabulary
    target: Vocabulary
    device: torch.device

    def solve(self, parts: Iterable[Part], n_best: int, settings: SearchConfig, penalty: Penalty) -> None:
        """Fill in the hypotheses of all parts, those of similar length together; more than `n_best` may come."""
        stepper = self.engine(settings.precision)
        kinds: dict[tuple[bool, int], list[Part]] = {}
        for part in sorted(parts, key=lambda part: -len(part.ids)):
            kinds.setdefault((part.settings.sample, self._width(part, settings)), []).append(part)
        for (sampled, width), alike in kinds.items():
            widest = max(_LOGITS // ((n_best if sampled else width or settings.beam) * len(self.target)), 1)
            widest = min(widest, settings.batch_lines or widest)
            for batch in batches(alike, lambda part: len(part.ids) + 1, settings.batch_tokens, widest):
                if sampled:
                    found = self._sample(stepper, batch, n_best, penalty)
                elif width:
                    found = self._grid(stepper, batch, width, n_best, penalty)
                else:
                    found = self._search(stepper, batch, min(n_best, settings.beam), settings, penalty)
                for part, hypotheses in zip(batch, found, strict=True):
                    part.hypotheses = hypotheses

    def look(self, parts: Sequence[Part], count: int, settings: SearchConfig) -> None:
        """Fill in the maps of the first `count` hypotheses of all parts."""
        pairs = [(part, found) for part in parts for found in part.hypotheses[:count]]
        order = sorted(range(len(pairs)), key=lambda i: -max(len(pairs[i][0].ids), len(pairs[i][1].ids)))
        maps: dict[int, torch.Tensor] = {}
        for rows in batches(
            order, lambda i: max(len(pairs[i][0].ids), len(pairs[i][1].ids)) + 1, settings.batch_tokens, len(order)
        ):
            batch = collate(
                [pairs[i][0].ids for i in rows],
                [pairs[i][1].ids for i in rows],
                bos=self.target.bos,
                eos=self.target.eos,
                pad=self.target.pad,
            )
            looked_BTS = attention_BTS(self.model, batch.to(self.device)).cpu()
            for i, map_TS in zip(rows, looked_BTS, strict=True):
                part, found = pairs[i]
                maps[i] = map_TS[: len(found.ids), part.lead : len(part.ids)].clone()
        for part in parts:
            part.maps = []
        for i, (part, _) in enumerate(pairs):
            part.maps.append(maps[i])

    def _width(self, part: Part, settings: SearchConfig) -> int:
        """The beam for required phrases: a place more for each of their tokens. 0 where nothing is required."""
        tokens = sum(map(len, part.required))
        return min(settings.beam + tokens, max(settings.beam, _WIDEST_GRID)) if tokens else 0

    def _search(
        self, stepper: Stepper, parts: Sequence[Part], n_best: int, settings: SearchConfig, penalty: Penalty
    ) -> list[list[Hypothesis]]:
        return search(
            stepper.step,
            stepper.start(*self._encoded(stepper, parts)),
            bos=self.target.bos,
            eos=self.target.eos,
            pad=self.target.pad,
            limits_B=[part.most for part in parts],
            beam=settings.beam,
            penalty=penalty,
            n_best=n_best,
            banned=[self.target.unk, *self.target.tags.values()],
            constraints=constraints_of(parts, self.target.eos, self.device),
        )

    def _sample(self, stepper: Stepper, parts: Sequence[Part], count: int, penalty: Penalty) -> list[list[Hypothesis]]:
        marks = self.target
        return sample(
            stepper.step,
            stepper.start(*self._encoded(stepper, parts), beams=count),
            bos=marks.bos,
            eos=marks.eos,
            banned=[marks.pad, marks.unk, marks.bos, *marks.tags.values()],
            limits=[part.most for part in parts],
            draws=[part.draw for part in parts],
            penalty=penalty,
            constraints=constraints_of(parts, marks.eos, self.device),
        )

    def _grid(
        self, stepper: Stepper, parts: Sequence[Part], width: int, n_best: int, penalty: Penalty
    ) -> list[list[Hypothesis]]:
        marks = self.target
        return grid_search(
            stepper.step,
            stepper.start(*self._encoded(stepper, parts)),
            bos=marks.bos,
            eos=marks.eos,
            banned=[marks.pad, marks.unk, marks.bos, *marks.tags.values()],
            limits=[part.most for part in parts],
            phrases=[part.required for part in parts],
            follow_V=self._follow_V,
            width=width,
            n_best=n_best,
            penalty=penalty,
            constraints=constraints_of(parts, marks.eos, self.device),
        )

    @cached_property
    def engine(self) -> Engine:
        """The model in the form that translates."""
        return Engine(self.model)

    @cached_property
    def _follow_V(self) -> torch.Tensor:
        """True for the tokens that may stand after a whole phrase: none that would go on with it."""
        ends = [i == self.target.eos or may_follow(self.target.piece(i)) for i in range(len(self.target))]
        return torch.tensor(ends, device=self.device)

    def _encoded(self, stepper: Stepper, parts: Sequence[Part]) -> tuple[torch.Tensor, torch.Tensor]:
        """The memory of the sources, and which of its places are real."""
        src_BS, keep_BS = collate_source([part.ids for part in parts], eos=self.source.eos, pad=self.source.pad)
        keep_BS = keep_BS.to(self.device)
        return stepper.encode(src_BS.to(self.device), keep_BS), keep_BS
