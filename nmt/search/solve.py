"""From parts of lines to hypotheses: who shares a batch, and which search each needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch

from nmt.batches.batch import collate, collate_source
from nmt.model.seq2seq import Seq2Seq
from nmt.search.align import attention_BTS
from nmt.search.batching import batches
from nmt.search.beam import search
from nmt.search.config import SearchConfig
from nmt.search.control.build import constraints_of
from nmt.search.control.diverse import diverse_search
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
        for batch, search_for in self.batches(parts, n_best, settings, penalty):
            search_for(batch)

    def batches(
        self, parts: Iterable[Part], n_best: int, settings: SearchConfig, penalty: Penalty
    ) -> Iterator[tuple[Sequence[Part], Callable[[Sequence[Part]], None]]]:
        """The same batch by batch: each with what fills in its hypotheses."""
        kinds: dict[tuple[bool, int, int, int, bool], list[Part]] = {}
        for part in sorted(parts, key=lambda part: -len(part.ids)):
            groups = part.settings.beam_groups if part.settings.diversity else 1
            kind = (
                part.settings.sample,
                self._width(part, settings),
                groups,
                part.wanted(n_best),
                part.settings.replace_unk,
            )
            kinds.setdefault(kind, []).append(part)
        for (sampled, width, groups, wanted, _), alike in kinds.items():
            widest = max(_LOGITS // ((wanted if sampled else width or settings.beam) * len(self.target)), 1)
            widest = min(widest, settings.batch_lines or widest)

            def fill(
                batch: Sequence[Part],
                sampled: bool = sampled,
                width: int = width,
                groups: int = groups,
                n: int = wanted,
            ) -> None:
                if sampled:
                    found = self._sample(batch, n, penalty)
                elif width:
                    found = self._grid(batch, width, n, penalty)
                elif groups > 1:
                    found = self._diverse(batch, groups, settings.beam, penalty)
                else:
                    found = self._search(batch, min(n, settings.beam), settings, penalty)
                for part, hypotheses in zip(batch, found, strict=True):
                    part.hypotheses = hypotheses

            for batch in batches(alike, lambda part: len(part.ids) + 1, settings.batch_tokens, widest):
                yield batch, fill

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
        self, parts: Sequence[Part], n_best: int, settings: SearchConfig, penalty: Penalty
    ) -> list[list[Hypothesis]]:
        return search(
            self.model.step,
            self.model.start(*self._encoded(parts)),
            bos=self.target.bos,
            eos=self.target.eos,
            pad=self.target.pad,
            limits_B=[part.most for part in parts],
            beam=settings.beam,
            penalty=penalty,
            n_best=n_best,
            banned=self._banned(parts),
            constraints=constraints_of(parts, self.target.bos, self.target.eos, self.device),
        )

    def _diverse(self, parts: Sequence[Part], groups: int, beam: int, penalty: Penalty) -> list[list[Hypothesis]]:
        marks = self.target
        return diverse_search(
            self.model.step,
            self.model.start(*self._encoded(parts)),
            bos=marks.bos,
            eos=marks.eos,
            banned=[marks.pad, marks.bos, *self._banned(parts)],
            limits=[part.most for part in parts],
            groups=groups,
            width=max(beam // groups, 1),
            strengths=[part.settings.diversity for part in parts],
            penalty=penalty,
            constraints=constraints_of(parts, marks.bos, marks.eos, self.device),
        )

    def _sample(self, parts: Sequence[Part], count: int, penalty: Penalty) -> list[list[Hypothesis]]:
        marks = self.target
        return sample(
            self.model.step,
            self.model.start(*self._encoded(parts), beams=count),
            bos=marks.bos,
            eos=marks.eos,
            banned=[marks.pad, marks.bos, *self._banned(parts)],
            limits=[part.most for part in parts],
            draws=[part.draw for part in parts],
            penalty=penalty,
            constraints=constraints_of(parts, marks.bos, marks.eos, self.device),
        )

    def _grid(self, parts: Sequence[Part], width: int, n_best: int, penalty: Penalty) -> list[list[Hypothesis]]:
        marks = self.target
        return grid_search(
            self.model.step,
            self.model.start(*self._encoded(parts)),
            bos=marks.bos,
            eos=marks.eos,
            banned=[marks.pad, marks.bos, *self._banned(parts)],
            limits=[part.most for part in parts],
            phrases=[part.required for part in parts],
            follow_V=self._follow_V,
            width=width,
            n_best=n_best,
            penalty=penalty,
            constraints=constraints_of(parts, marks.bos, marks.eos, self.device),
        )

    def _banned(self, parts: Sequence[Part]) -> list[int]:
        """Tags, and the unknown token unless it is to be replaced, which parts of one batch agree on."""
        unknown = [] if parts[0].settings.replace_unk else [self.target.unk]
        return [*unknown, *self.target.tags.values()]

    @cached_property
    def _follow_V(self) -> torch.Tensor:
        """True for the tokens that may stand after a whole phrase: none that would go on with it."""
        ends = [i == self.target.eos or may_follow(self.target.piece(i)) for i in range(len(self.target))]
        return torch.tensor(ends, device=self.device)

    def _encoded(self, parts: Sequence[Part]) -> tuple[torch.Tensor, torch.Tensor]:
        """The memory of the sources, and which of its places are real."""
        src_BS, keep_BS = collate_source([part.ids for part in parts], eos=self.source.eos, pad=self.source.pad)
        keep_BS = keep_BS.to(self.device)
        return self.model.encode(src_BS.to(self.device), keep_BS), keep_BS
