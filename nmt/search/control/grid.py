"""Beam search whose hypotheses must hold given phrases: dynamic beam allocation (Post & Vilar 2018).

S sentences · R rows: sentences × hypotheses · V vocabulary · N beam

Hypotheses compete only with those that hold as many tokens of the phrases: the beam's places go round among these
banks, so a phrase that is improbable where it begins is not lost before it is complete. Besides the most probable
tokens, every hypothesis is tried with those that begin or go on with a phrase. None may end before it holds all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from nmt.model.seq2seq import State
from nmt.search.candidates import log_probabilities
from nmt.search.control.core import Constraints
from nmt.search.hypothesis import Hypothesis
from nmt.search.length import Penalty

Phrase = tuple[int, ...]


@dataclass(frozen=True)
class Progress:
    """How much of the wanted phrases a hypothesis holds."""

    phrases: tuple[Phrase, ...]
    """Distinct and not empty."""
    left: tuple[int, ...]
    """How often each is still wanted."""
    at: tuple[int, ...]
    """How many tokens of each the hypothesis ends with."""
    completed: bool = False
    """Whether the last token completed one."""

    @classmethod
    def start(cls, phrases: Sequence[Phrase]) -> Progress:
        """Nothing yet; a phrase that is named twice is wanted twice."""
        distinct = tuple(dict.fromkeys(phrase for phrase in phrases if phrase))
        return cls(distinct, tuple(list(phrases).count(phrase) for phrase in distinct), tuple(0 for _ in distinct))

    @property
    def missing(self) -> int:
        """How many tokens it needs at least to hold all."""
        return sum(n * len(phrase) for n, phrase in zip(self.left, self.phrases, strict=True)) - max(self.at, default=0)

    def wanted(self) -> set[int]:
        """The tokens that begin a phrase or go on with one."""
        open_ = [(phrase, at) for phrase, n, at in zip(self.phrases, self.left, self.at, strict=True) if n]
        return {phrase[0] for phrase, _ in open_} | {phrase[at] for phrase, at in open_}

    def after(self, token: int) -> Progress:
        """The progress with one token more."""
        left, at, completed = list(self.left), [0 for _ in self.at], False
        for i, phrase in enumerate(self.phrases):
            if not left[i]:
                continue
            at[i] = _matched(phrase, self.at[i], token)
            if at[i] == len(phrase):
                left[i], at[i], completed = left[i] - 1, 0, True
        return replace(self, left=tuple(left), at=tuple(at), completed=completed)


def _matched(phrase: Phrase, at: int, token: int) -> int:
    """How many tokens of `phrase` the text ends with, where it ended with `at` before `token`."""
    recent = (*phrase[:at], token)
    return next(n for n in range(min(len(recent), len(phrase)), -1, -1) if recent[len(recent) - n :] == phrase[:n])


@dataclass(frozen=True)
class _Live:
    """A hypothesis that goes on."""

    total: float
    ids: tuple[int, ...]
    gains: tuple[float, ...]
    progress: Progress
    place: int = 0
    """Where its row stands among those of its sentence."""


def grid_search(
    step: Callable[[State, Tensor], tuple[Tensor, State]],
    state: State,
    *,
    bos: int,
    eos: int,
    banned: Sequence[int],
    limits: Sequence[int],
    phrases: Sequence[Sequence[Phrase]],
    follow_V: Tensor,
    width: int,
    n_best: int,
    penalty: Penalty,
    constraints: Constraints | None = None,
) -> list[list[Hypothesis]]:
    """Hypotheses of each sentence that hold all its `phrases`, as often as they are named: the `n_best` best and more.

    `follow_V` is True for tokens that may stand after a complete phrase: those that begin a word or end one. Where a
    sentence's limit leaves no room for the phrases, what is found lacks some; where `constraints` rule them out,
    nothing may be found.
    """
    device = follow_V.device
    search = _Grid(limits, phrases, eos, width, n_best, penalty)
    last_R = torch.full((len(limits),), bos, device=device)
    while search.numbers:
        logits_RV, state = step(state, last_R)
        adjust = None
        if constraints is not None:
            ids_RT = torch.tensor([live.ids for live in search.rows()], dtype=torch.long, device=device)
            adjust = partial(constraints, ids_RT=ids_RT, sentences=search.sentences())
        log_probs_RV = log_probabilities(logits_RV, banned, adjust)
        complete = [row for row, live in enumerate(search.rows()) if live.progress.completed]
        if complete:
            log_probs_RV[complete] = log_probs_RV[complete].masked_fill(~follow_V, -torch.inf)
        staying = search.extend(log_probs_RV)
        if len(staying) < len(limits):
            state = state.select(torch.tensor(staying, dtype=torch.long, device=device))
        limits = [search.limits[i] for i in search.numbers]
        parents = [s * state.beams + live.place for s, beam in enumerate(search.beams) for live in beam]
        state = state.reorder(torch.tensor(parents, dtype=torch.long, device=device), width)
        last_R = torch.tensor([live.ids[-1] for live in search.rows()], dtype=torch.long, device=device)
    return search.best_first()


class _Grid:
    """The hypotheses of all sentences: `width` that go on, padded with impossible ones, and those that have ended."""

    def __init__(
        self,
        limits: Sequence[int],
        phrases: Sequence[Sequence[Phrase]],
        eos: int,
        width: int,
        n_best: int,
        penalty: Penalty,
    ) -> None:
        self.limits, self.eos, self.width, self.n_best, self.penalty = limits, eos, width, n_best, penalty
        self.numbers = list(range(len(limits)))  # whose sentences are in the batch
        self.beams = [[_Live(0.0, (), (), Progress.start(wanted))] for wanted in phrases]
        self.ended: list[list[Hypothesis]] = [[] for _ in limits]

    def rows(self) -> list[_Live]:
        """All hypotheses in the batch."""
        return [live for beam in self.beams for live in beam]

    def sentences(self) -> list[int]:
        """Whose hypothesis each row is."""
        return [number for number, beam in zip(self.numbers, self.beams, strict=True) for _ in beam]

    def extend(self, log_probs_RV: Tensor) -> list[int]:
        """One token more for every sentence. Returns the places of the sentences that go on."""
        best_RN, tokens_RN = log_probs_RV.topk(min(self.width, log_probs_RV.size(1)))
        rows = self.rows()
        wanted = [(row, token) for row, live in enumerate(rows) for token in sorted(live.progress.wanted())]
        ends = log_probs_RV[:, self.eos].tolist()
        likeliest = tokens_RN[:, 0].tolist()
        extra = log_probs_RV[[row for row, _ in wanted], [token for _, token in wanted]].tolist() if wanted else []
        options = [dict(zip(t, g, strict=True)) for t, g in zip(tokens_RN.tolist(), best_RN.tolist(), strict=True)]
        for (row, token), gain in zip(wanted, extra, strict=True):
            options[row][token] = gain
        staying, beams, row = [], [], 0
        for place, (number, beam) in enumerate(zip(self.numbers, self.beams, strict=True)):
            here = range(row, row + len(beam))
            row += len(beam)
            for i, live in zip(here, beam, strict=True):
                self._end(number, live, ends[i], likeliest[i] == self.eos)
            grown = self._grown(number, beam, [options[i] for i in here])
            if grown and not self._done(number, grown):
                staying.append(place)
                beams.append(grown)
        self.numbers = [self.numbers[place] for place in staying]
        self.beams = beams
        return staying

    def _end(self, number: int, live: _Live, gain: float, wanted: bool) -> None:
        """Write down a hypothesis with its end mark, if it may end here or must."""
        full = len(live.ids) >= self.limits[number]
        if live.total == -torch.inf or not full and (live.progress.missing or gain == -torch.inf):
            return
        gain = max(gain, -1e9)
        total = live.total + gain
        score = self.penalty.score(total, len(live.ids) + 1)
        self.ended[number].append(Hypothesis(live.ids, total, score, (*live.gains, gain), wanted or not full))

    def _grown(self, number: int, beam: Sequence[_Live], options: Sequence[dict[int, float]]) -> list[_Live]:
        """The hypotheses to go on with, filled up to the beam's width; none where nothing can go on."""
        length = len(beam[0].ids) + 1
        if length > self.limits[number]:
            return []
        grown = [
            _Live(live.total + gain, (*live.ids, token), (*live.gains, gain), live.progress.after(token), place)
            for place, (live, tokens) in enumerate(zip(beam, options, strict=True))
            for token, gain in tokens.items()
            if token != self.eos and live.total + gain > -torch.inf
        ]
        in_time = [live for live in grown if live.progress.missing <= self.limits[number] - length]
        chosen = shared_out(in_time or grown, self.width)
        return chosen + [replace(chosen[0], total=-torch.inf)] * (self.width - len(chosen)) if chosen else []

    def _done(self, number: int, beam: Sequence[_Live]) -> bool:
        """Whether nothing that goes on can still come among the best."""
        scores = sorted((found.score for found in self.ended[number]), reverse=True)
        if len(scores) < self.n_best:
            return False
        best = max(live.total for live in beam)
        reachable = self.penalty.best(best, len(beam[0].ids) + 1, self.limits[number] + 1)
        return reachable <= scores[self.n_best - 1]

    def best_first(self) -> list[list[Hypothesis]]:
        """All that have ended, of each sentence."""
        return [sorted(ended, key=lambda found: -found.score) for ended in self.ended]


def shared_out(hypotheses: Iterable[_Live], places: int) -> list[_Live]:
    """The best hypotheses, the places going round among banks of equal progress, from the most to the least."""
    banks: dict[int, list[_Live]] = {}
    for live in sorted(hypotheses, key=lambda live: -live.total):
        banks.setdefault(live.progress.missing, []).append(live)
    ordered = [banks[missing] for missing in sorted(banks)]
    rounds = range(max(map(len, ordered), default=0))
    return [bank[i] for i in rounds for bank in ordered if i < len(bank)][:places]
