"""Beam search over many sentences at once.

S sentences · N beam · P hypotheses before a step: 1, then N · R rows: sentences × hypotheses · M candidates: 2N
V vocabulary · T tokens so far · K best wanted

Of each sentence's 2N best continuations, those among the N best that choose the end mark are written down, and the N
best of the others go on: there are always enough, as a hypothesis has one end mark. So the beam stays full, which is
the rule of CTranslate2 (and of tensor2tensor before it), and a beam of 1 is greedy search. At its sentence's limit a
hypothesis may choose nothing but the end mark; it then counts as cut unless that was the most probable token anyway.

A sentence is done once N × patience hypotheses have ended, or once nothing that goes on can still come among its K
best, whatever the length penalty (see length.py): stopping then changes no result. Sentences that are done leave the
batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import pad as pad_columns

from nmt.model import compiling
from nmt.model.seq2seq import State
from nmt.search.batching import close_ranks
from nmt.search.candidates import Predictions, predictions
from nmt.search.control.core import Constraints
from nmt.search.greedy import greedy
from nmt.search.hypothesis import Hypothesis
from nmt.search.length import Penalty
from nmt.search.quick import QuickBeams

Step = Callable[[State, Tensor], tuple[Tensor, State]]


def search(
    step: Step,
    state: State,
    *,
    bos: int,
    eos: int,
    pad: int,
    limits_B: Sequence[int] | Tensor,
    beam: int,
    penalty: Penalty,
    n_best: int = 1,
    patience: float = 1.0,
    banned: Sequence[int] = (),
    constraints: Constraints | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` best hypotheses of every sentence, best first and distinct; fewer only where fewer exist.

    `state` is that of `Seq2Seq.start`, one row a sentence; the beams are made after the first token, since before it
    they are all alike. `limits_B` holds every sentence's most tokens, the end mark not counted. `pad`, `bos` and
    whatever else is `banned` are never chosen, nor what `constraints` rule out. `n_best` is at most `beam`. `patience`:
    without end, a sentence is done only when nothing unfinished could still be among its best.
    """
    if not 1 <= n_best <= beam or state.beams != 1:
        raise ValueError(f"n_best = {n_best} and state.beams = {state.beams} do not fit beam = {beam}")
    limits = [int(limit) for limit in limits_B]
    banned = sorted({bos, pad, *banned} - {eos})
    tensors = [*state.sentences, *state.rows]
    device = tensors[0].device if tensors else torch.device("cpu")
    if beam == 1:
        return greedy(
            step,
            state,
            bos=bos,
            eos=eos,
            limits=limits,
            penalty=penalty,
            banned=banned,
            constraints=constraints,
            device=device,
        )
    beams: Beams | QuickBeams
    if device.type == "cpu" and compiling.AVAILABLE:
        beams = QuickBeams(limits, beam, n_best, eos, penalty, patience)
    else:
        beams = Beams(limits, beam, n_best, eos, penalty, device, patience)
    return beam_search(step, state, beams, bos, banned, constraints)


def beam_search(
    step: Step,
    state: State,
    beams: Beams | QuickBeams,
    bos: int,
    banned: Sequence[int],
    constraints: Constraints | None = None,
) -> list[list[Hypothesis]]:
    """Step, extend, finish, keep, reorder, until every sentence is done."""
    last_R = torch.full((len(beams.ids_RT),), bos, device=beams.ids_RT.device)
    while beams.numbers:
        logits_RV, state = step(state, last_R)
        adjust = None
        if constraints is not None:
            adjust = partial(constraints, ids_RT=beams.ids_RT, sentences=beams.sentences())
        staying_S, parent_SN, last_R = beams.advance(predictions(logits_RV, banned, adjust))
        if staying_S is not None:
            state = state.select(staying_S)
        state = state.reorder(rows(parent_SN, state.beams), beams.width)
    return beams.best_first()


def rows(place_SN: Tensor, beams: int) -> Tensor:
    """Places among the `beams` hypotheses of each sentence, as rows of the batch."""
    if beams == 1:
        return torch.arange(place_SN.size(0), device=place_SN.device).repeat_interleave(place_SN.size(1))
    first_S1 = torch.arange(0, place_SN.size(0) * beams, beams, device=place_SN.device)[:, None]
    return (first_S1 + place_SN).flatten()


@dataclass(frozen=True)
class _Chosen:
    """Continuations of each sentence, best first: one token more for hypotheses in the batch."""

    total_SN: Tensor
    """Log-probability of the whole hypothesis; -inf where there is none."""
    gain_SN: Tensor
    """Log-probability of its newest token."""
    parent_SN: Tensor
    """Place of the hypothesis that it continues."""
    token_SN: Tensor

    def of(self, staying_S: Tensor) -> _Chosen:
        """Those of some sentences only."""
        return _Chosen(**{name: value.index_select(0, staying_S) for name, value in vars(self).items()})

    def at(self, place_SN: Tensor) -> _Chosen:
        """Those at some places of each sentence."""
        return _Chosen(**{name: value.gather(1, place_SN) for name, value in vars(self).items()})


@dataclass(frozen=True)
class _Ending:
    """Hypotheses that choose their end mark in this step."""

    mask_SN: Tensor
    """Which of `chosen` do; the others mean nothing."""
    chosen: _Chosen
    cut_SN: Tensor
    """Which of them had to, against the model's wish."""


class Beams:
    """The hypotheses of the sentences still in the batch, and those that have ended, of all sentences."""

    def __init__(
        self,
        limits: list[int],
        beam: int,
        n_best: int,
        eos: int,
        penalty: Penalty,
        device: torch.device,
        patience: float = 1.0,
    ) -> None:
        count = len(limits)
        self.enough = beam * patience  # hypotheses that have ended
        self.width, self.n_best, self.eos, self.penalty = beam, n_best, eos, penalty
        self.ended: list[list[Hypothesis]] = [[] for _ in limits]
        self.numbers = list(range(count))  # whose sentences are in the batch
        self.limits = limits
        self.limit_S = torch.tensor(limits, device=device)
        self.live_SP = torch.zeros((count, 1), device=device)  # one each before the first token, then `width`
        self.best_SK = torch.full((count, n_best), -torch.inf, device=device)
        self.ids_RT = torch.empty((count, 0), dtype=torch.long, device=device)
        self.gains_RT = torch.empty((count, 0), device=device)

    def sentences(self) -> list[int]:
        """Whose hypothesis each row of the batch is."""
        return [number for number in self.numbers for _ in range(self.live_SP.size(1))]

    def advance(self, following: Predictions) -> tuple[Tensor | None, Tensor, Tensor]:
        """One step: the sentences that stay in the batch, None where all do, and what goes on in them.

        That is the parent_SN that each hypothesis goes on from, a place of its sentence, and its newest token_R.
        """
        chosen, ending = self.extend(following)
        self.finish(ending)
        staying_S = self.keep(chosen)
        if staying_S is not None:
            chosen = chosen.of(staying_S)
        return staying_S, chosen.parent_SN, chosen.token_SN.flatten()

    def extend(self, following: Predictions) -> tuple[_Chosen, _Ending]:
        """What goes on and what ends."""
        candidates = _Chosen(*following.continuations(self.live_SP, 2 * self.width))
        is_end_SM = candidates.token_SN == self.eos
        chosen = candidates.at(candidates.total_SN.masked_fill(is_end_SM, -torch.inf).topk(self.width).indices)
        chosen.total_SN.masked_fill_(chosen.token_SN == self.eos, -torch.inf)  # where fewer than N go on
        mask_SN = (is_end_SM & (candidates.total_SN > -torch.inf))[:, : self.width]
        ending = _Ending(mask_SN, candidates, torch.zeros_like(mask_SN))
        if self.ids_RT.size(1) < min(self.limits):
            return chosen, ending
        return self._end_at_limit(chosen, ending, following)

    def _filled(self, parts: Sequence[Tensor]) -> list[Tensor]:
        """Twice as many columns as places: before the first token there are fewer."""
        missing = 2 * self.width - parts[0].size(1)
        if missing <= 0:
            return list(parts)
        return [pad_columns(x_SM, (0, missing), value=-torch.inf if i == 0 else 0) for i, x_SM in enumerate(parts)]

    def _end_at_limit(self, chosen: _Chosen, ending: _Ending, following: Predictions) -> tuple[_Chosen, _Ending]:
        """In sentences at their limit, every hypothesis ends and none goes on."""
        full_S1 = (self.limit_S <= self.ids_RT.size(1))[:, None]
        chosen = replace(chosen, total_SN=chosen.total_SN.masked_fill(full_S1, -torch.inf))
        gain_SP = following.gains(self.eos).view_as(self.live_SP).clamp(min=-1e9)  # impossible or not, it has to end
        likely_SP = (following.favourites() == self.eos).view_as(self.live_SP)
        place_SP = torch.arange(self.live_SP.size(1), device=full_S1.device).expand_as(self.live_SP)
        ends_SP = place_SP.new_full((), self.eos).expand_as(place_SP)
        forced = _Chosen(*self._filled([self.live_SP + gain_SP, gain_SP, place_SP, ends_SP]))
        missing = self.width - self.live_SP.size(1)
        merged = {name: torch.where(full_S1, x, getattr(ending.chosen, name)) for name, x in vars(forced).items()}
        mask_SN = torch.where(full_S1, forced.total_SN[:, : self.width] > -torch.inf, ending.mask_SN)
        return chosen, _Ending(mask_SN, _Chosen(**merged), full_S1 & ~pad_columns(likely_SP, (0, missing)))

    def finish(self, ending: _Ending) -> None:
        """Write down the hypotheses that end."""
        where = ending.mask_SN.nonzero()
        if not len(where):
            return
        chosen, places = ending.chosen, ending.mask_SN.size(1)
        scores_SN = self.penalty.score(chosen.total_SN[:, :places], self.ids_RT.size(1) + 1)
        scores_SN = scores_SN.masked_fill(~ending.mask_SN, -torch.inf)
        self.best_SK = torch.cat([self.best_SK, scores_SN], 1).topk(self.n_best).values
        sentences, ended = where.T
        parents = sentences * self.live_SP.size(1) + chosen.parent_SN[sentences, ended]
        histories = self.ids_RT[parents].tolist(), self.gains_RT[parents].tolist()
        columns = [x[sentences, ended].tolist() for x in (chosen.total_SN, chosen.gain_SN, scores_SN, ending.cut_SN)]
        for sentence, ids, gains, total, gain, score, cut in zip(sentences.tolist(), *histories, *columns, strict=True):
            found = Hypothesis(tuple(ids), total, score, (*gains, gain), not cut)
            self.ended[self.numbers[sentence]].append(found)

    def keep(self, chosen: _Chosen) -> Tensor | None:
        """Go on with `chosen`. Returns the sentences that stay in the batch, None where all do."""
        parents_R = rows(chosen.parent_SN, self.live_SP.size(1))
        self.live_SP = chosen.total_SN
        self.ids_RT = torch.cat([self.ids_RT[parents_R], chosen.token_SN.view(-1, 1)], 1)
        self.gains_RT = torch.cat([self.gains_RT[parents_R], chosen.gain_SN.view(-1, 1)], 1)
        best_live_S = self.live_SP[:, 0]  # -inf where none goes on, which nothing can be worse than
        reachable_S = self.penalty.best(best_live_S, self.ids_RT.size(1) + 1, self.limit_S + 1)
        going_on = (reachable_S > self.best_SK[:, -1]).tolist()
        going_on = [on and len(self.ended[i]) < self.enough for on, i in zip(going_on, self.numbers, strict=True)]
        if all(going_on):
            return None
        staying_S = torch.tensor(close_ranks(going_on), dtype=torch.long, device=self.live_SP.device)
        self._leave(staying_S)
        return staying_S

    def _leave(self, staying_S: Tensor) -> None:
        """Take the sentences that are done out of the batch."""
        staying = staying_S.tolist()
        self.numbers = [self.numbers[i] for i in staying]
        self.limits = [self.limits[i] for i in staying]
        place_N = torch.arange(self.width, device=staying_S.device)
        rows_R = (staying_S[:, None] * self.width + place_N).flatten()
        self.ids_RT, self.gains_RT = self.ids_RT[rows_R], self.gains_RT[rows_R]
        self.limit_S, self.live_SP, self.best_SK = (x[staying_S] for x in (self.limit_S, self.live_SP, self.best_SK))

    def best_first(self) -> list[list[Hypothesis]]:
        """Of each sentence, the wanted number of its best hypotheses."""
        return [sorted(ended, key=lambda found: -found.score)[: self.n_best] for ended in self.ended]
