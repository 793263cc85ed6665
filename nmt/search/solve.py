"""From parts of lines to hypotheses: who shares a batch, and which search each needs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property

import torch

from nmt.batches.batch import collate_source
from nmt.model.inference.build import Engine
from nmt.model.inference.captured import CapturedTransformer
from nmt.model.seq2seq import Seq2Seq, Stepper
from nmt.search.batching import batches
from nmt.search.beam import search
from nmt.search.company import alone, apart, widest
from nmt.search.config import SearchConfig
from nmt.search.control.build import constraints_of
from nmt.search.control.config import ControlConfig
from nmt.search.control.diverse import diverse_search
from nmt.search.control.grid import grid_search
from nmt.search.control.phrases import may_follow
from nmt.search.control.sample import sample
from nmt.search.crew import Crew, Turns
from nmt.search.hypothesis import Hypothesis
from nmt.search.length import Penalty
from nmt.search.part import Part
from nmt.search.resident import Rules, resident_search
from nmt.search.threads import done_side_by_side, one_thread
from nmt.subwords.vocabulary import Vocabulary

_LOGITS = 1 << 25  # most numbers in the logits of one step, so that short sentences don't make endless batches
_WIDEST_GRID = 48  # most hypotheses of a line with required phrases, unless its beam is wider by itself


def _fair(lines: int, workers: int | None) -> int:
    """Lines of a batch so that none of the workers waits long for the last; no batch is made small for that alone."""
    workers = workers or torch.get_num_threads()
    return max(-(-lines // (4 * workers)), 16) if workers > 1 else lines


@dataclass(frozen=True)
class _Job:
    """Parts that share a batch, and the search that they need."""

    parts: Sequence[Part]
    sampled: bool
    width: int
    """Of the beam for required phrases; 0 where none are."""
    groups: int
    """Of a diverse beam."""
    wanted: int
    """Hypotheses of each part."""


@dataclass(frozen=True)
class Solver:
    """A model and its two vocabularies."""

    model: Seq2Seq
    source: Vocabulary
    target: Vocabulary
    device: torch.device

    def solve(self, parts: Iterable[Part], n_best: int, settings: ControlConfig, penalty: Penalty) -> None:
        """Fill in the hypotheses of all parts, those of similar length together; more than `n_best` may come."""
        for _ in self.solving(parts, n_best, settings, penalty):
            pass

    def solving(
        self, parts: Iterable[Part], n_best: int, settings: ControlConfig, penalty: Penalty
    ) -> Iterator[Sequence[Part]]:
        """The same, telling which parts have theirs, batch by batch."""
        crew = self.crew.of(self, settings.workers)
        pairs = [(one, one.engine(settings.precision)) for one in crew]
        turns = Turns(pairs)

        def work(job: _Job) -> None:
            with turns.one() as (solver, stepper), one_thread() if alone(stepper, self.device) else nullcontext():
                found = solver.found(stepper, job, settings, penalty)
            for part, hypotheses in zip(job.parts, found, strict=True):
                part.hypotheses = hypotheses

        workers = settings.workers if self.device.type == "cpu" else len(crew)
        for job in done_side_by_side(work, list(self._jobs(parts, n_best, settings, pairs[0][1])), workers):
            yield job.parts

    def found(self, stepper: Stepper, job: _Job, settings: ControlConfig, penalty: Penalty) -> list[list[Hypothesis]]:
        """The hypotheses of a batch, by the search that it needs."""
        if job.sampled:
            return self._sample(stepper, job.parts, job.wanted, penalty)
        if job.width:
            return self._grid(stepper, job.parts, job.width, job.wanted, penalty)
        if job.groups > 1:
            return self._diverse(stepper, job.parts, job.groups, settings.beam, penalty)
        return self._search(stepper, job.parts, min(job.wanted, settings.beam), settings, penalty)

    def _jobs(self, parts: Iterable[Part], n_best: int, settings: ControlConfig, stepper: Stepper) -> Iterator[_Job]:
        """The batches, longest first within each kind; sources of different numbers of places may be kept apart."""
        places, captured = apart(stepper), isinstance(stepper, CapturedTransformer)
        budget = sys.maxsize if captured else settings.batch_tokens  # static memory holds all slots in any case
        kinds: dict[tuple[bool, int, int, int, bool, int], list[Part]] = {}
        for part in sorted(parts, key=lambda part: -len(part.ids)):
            groups = part.settings.beam_groups if part.settings.diversity else 1
            kind = (
                part.settings.sample,
                self._width(part, settings),
                groups,
                part.wanted(n_best),
                part.settings.replace_unk,
                places(len(part.ids) + 1),
            )
            kinds.setdefault(kind, []).append(part)
        for (sampled, width, groups, wanted, _, _), alike in kinds.items():
            rows = wanted if sampled else width or settings.beam
            most = max(_LOGITS // (rows * len(self.target)), 1)
            if isinstance(stepper, CapturedTransformer):
                most = stepper.slots(rows)  # whose memory is there already
            elif self.device.type == "cpu":
                most = min(most, widest(stepper, self.device, rows), _fair(len(alike), settings.workers))
            most = min(most, settings.batch_lines or most)
            for batch in batches(alike, lambda part: len(part.ids) + 1, budget, most):
                yield _Job(batch, sampled, width, groups, wanted)

    def _width(self, part: Part, settings: SearchConfig) -> int:
        """The beam for required phrases: a place more for each of their tokens. 0 where nothing is required."""
        tokens = sum(map(len, part.required))
        return min(settings.beam + tokens, max(settings.beam, _WIDEST_GRID)) if tokens else 0

    def _search(
        self, stepper: Stepper, parts: Sequence[Part], n_best: int, settings: ControlConfig, penalty: Penalty
    ) -> list[list[Hypothesis]]:
        constraints = constraints_of(parts, self.target.bos, self.target.eos, self.device)
        if isinstance(stepper, CapturedTransformer) and constraints is None:
            return self._resident(stepper, parts, n_best, settings, penalty)
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
            patience=settings.patience,
            banned=self._banned(parts),
            constraints=constraints,
        )

    def _resident(
        self, form: CapturedTransformer, parts: Sequence[Part], n_best: int, settings: ControlConfig, penalty: Penalty
    ) -> list[list[Hypothesis]]:
        marks, beam = self.target, settings.beam
        banned = tuple(sorted({marks.pad, marks.bos, *self._banned(parts)} - {marks.eos}))
        patience = settings.patience if beam > 1 else 1.0  # greedy search has none
        rules = Rules(marks.bos, marks.eos, banned, beam, penalty, n_best, patience)
        return resident_search(form, *self._encoded(form, parts), [part.most for part in parts], rules)

    def _diverse(
        self, stepper: Stepper, parts: Sequence[Part], groups: int, beam: int, penalty: Penalty
    ) -> list[list[Hypothesis]]:
        marks = self.target
        return diverse_search(
            stepper.step,
            stepper.start(*self._encoded(stepper, parts)),
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

    def _sample(self, stepper: Stepper, parts: Sequence[Part], count: int, penalty: Penalty) -> list[list[Hypothesis]]:
        marks = self.target
        return sample(
            stepper.step,
            stepper.start(*self._encoded(stepper, parts), beams=count),
            bos=marks.bos,
            eos=marks.eos,
            banned=[marks.pad, marks.bos, *self._banned(parts)],
            limits=[part.most for part in parts],
            draws=[part.draw for part in parts],
            penalty=penalty,
            constraints=constraints_of(parts, marks.bos, marks.eos, self.device),
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
        """Reserved ids, and the unknown token unless it is to be replaced, which parts of one batch agree on."""
        unknown = [] if parts[0].settings.replace_unk else [self.target.unk]
        return [*unknown, *self.target.reserved.values()]

    @cached_property
    def crew(self) -> Crew:
        """This solver, and those like it on other devices."""
        return Crew()

    @property
    def busy(self) -> threading.Lock:
        """Held by whoever computes on its GPU."""
        lock: threading.Lock = self.__dict__.setdefault("_busy", threading.Lock())
        return lock

    @cached_property
    def engine(self) -> Engine:
        """The model in the form that translates."""
        return Engine(self.model, self.device)

    def scorer(self, precision: str) -> Stepper:
        """The form that scores given translations on a processor, in float32; search's own, where that computes so."""
        own = precision in ("float32", "auto") and self.engine.arithmetic(precision) == "float32"
        return (self.engine if own else self._second_engine)("float32")

    @cached_property
    def _second_engine(self) -> Engine:
        """The same beside a form of another precision."""
        return Engine(self.model, self.device)

    @cached_property
    def _follow_V(self) -> torch.Tensor:
        """True for the tokens that may stand after a whole phrase: none that would go on with it."""
        ends = [i == self.target.eos or may_follow(self.target.piece(i)) for i in range(len(self.target))]
        return torch.tensor(ends, device=self.device)

    def _encoded(self, stepper: Stepper, parts: Sequence[Part]) -> tuple[torch.Tensor, torch.Tensor]:
        """The memory of the sources, and which of its places are real."""
        src_BS, keep_BS = self.sources([part.ids for part in parts])
        return stepper.encode(src_BS, keep_BS), keep_BS

    def sources(self, ids: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Sources as a batch, and which of its places are real."""
        src_BS, keep_BS = collate_source(ids, eos=self.source.eos, pad=self.source.pad)
        return src_BS.to(self.device), keep_BS.to(self.device)
