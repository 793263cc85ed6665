"""Beam search over many sentences at once.

S sentences · N beam · P hypotheses before a step: 1, then N · R rows: sentences × hypotheses · M candidates
V vocabulary · T tokens so far · K best wanted · 1 broadcast

A beam holds N hypotheses of a sentence. Those that end keep their places and the others go on with the places left,
so a beam of 1 is greedy search. A hypothesis ends by choosing the end mark; at its sentence's limit nothing else may
be chosen, and it then counts as cut unless the end mark was the most probable token anyway. A sentence is done once
nothing unfinished can still come among its K best, whatever the length penalty (see length.py), or once all places
are taken by ended ones. Sentences that are done leave the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import pad as pad_columns

from nmt.model.seq2seq import State, reorder, select
from nmt.search.candidates import next_tokens
from nmt.search.control.core import Constraints
from nmt.search.greedy import greedy
from nmt.search.hypothesis import Hypothesis
from nmt.search.length import Penalty

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
    banned: Sequence[int] = (),
    constraints: Constraints | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` best hypotheses of every sentence, best first and distinct; fewer only where fewer exist.

    `state` is that of `Seq2Seq.start`, one row a sentence; the beams are made after the first token, since before it
    they are all alike. `limits_B` holds every sentence's most tokens, the end mark not counted. `pad`, `bos` and
    whatever else is `banned` are never chosen, nor what `constraints` rule out. `n_best` is at most `beam`.
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
    return beam_search(step, state, _Beams(limits, beam, n_best, eos, penalty, device), bos, banned, constraints)


def beam_search(
    step: Step,
    state: State,
    beams: _Beams,
    bos: int,
    banned: Sequence[int],
    constraints: Constraints | None = None,
) -> list[list[Hypothesis]]:
    """Step, extend, finish, keep, reorder, until every sentence is done."""
    last_R = torch.full((beams.live_SN.numel(),), bos, device=beams.live_SN.device)
    while beams.numbers:
        logits_RV, state = step(state, last_R)
        adjust = None
        if constraints is not None:
            adjust = partial(constraints, ids_RT=beams.ids_RT, sentences=beams.sentences())
        chosen = beams.extend(*next_tokens(logits_RV, beams.width, banned, adjust))
        beams.finish(chosen)
        staying_S = beams.keep(chosen)
        if staying_S is not None:
            state, chosen = select(state, staying_S), chosen.of(staying_S)
        state = replace(reorder(state, rows(chosen.parent_SN, state.beams)), beams=beams.width)
        last_R = chosen.token_SN.flatten()
    return beams.best_first()


def rows(place_SN: Tensor, beams: int) -> Tensor:
    """Places among the `beams` hypotheses of each sentence, as rows of the batch."""
    first_S1 = torch.arange(0, place_SN.size(0) * beams, beams, device=place_SN.device)[:, None]
    return (first_S1 + place_SN).flatten()


@dataclass(frozen=True)
class _Chosen:
    """The N best continuations of each sentence, best first."""

    total_SN: Tensor
    """Log-probability of the whole hypothesis; -inf where there is none."""
    gain_SN: Tensor
    """Log-probability of its newest token."""
    parent_SN: Tensor
    """Place of the hypothesis that it continues."""
    token_SN: Tensor
    ended_SN: Tensor
    cut_SN: Tensor

    def of(self, staying_S: Tensor) -> _Chosen:
        """Those of some sentences only."""
        return _Chosen(**{name: value.index_select(0, staying_S) for name, value in vars(self).items()})


class _Beams:
    """The hypotheses of the sentences still in the batch, and those that have ended, of all sentences."""

    def __init__(
        self, limits: list[int], beam: int, n_best: int, eos: int, penalty: Penalty, device: torch.device
    ) -> None:
        count = len(limits)
        self.width, self.n_best, self.eos, self.penalty = beam, n_best, eos, penalty
        self.ended: list[list[Hypothesis]] = [[] for _ in limits]
        self.numbers = list(range(count))  # whose sentences are in the batch
        self.limits = limits
        self.limit_S = torch.tensor(limits, device=device)
        self.live_SN = torch.zeros((count, 1), device=device)  # one each before the first token, then `width`
        self.places_S1 = torch.full((count, 1), beam, device=device)
        self.best_SK = torch.full((count, n_best), -torch.inf, device=device)
        self.ids_RT = torch.empty((count, 0), dtype=torch.long, device=device)
        self.gains_RT = torch.empty((count, 0), device=device)
        self.place_N = torch.arange(beam, device=device)

    def sentences(self) -> list[int]:
        """Whose hypothesis each row of the batch is."""
        return [number for number in self.numbers for _ in range(self.live_SN.size(1))]

    def extend(self, log_probs_RV: Tensor, best_RN: Tensor, tokens_RN: Tensor) -> _Chosen:
        """The best continuations of each sentence, as many as it has places."""
        sentences, each = len(self.numbers), best_RN.size(1)
        gains, tokens = self._filled(best_RN.view(sentences, -1), 0), self._filled(tokens_RN.view(sentences, -1), 0)
        total_SM = (self.live_SN[:, :, None] + best_RN.view(sentences, -1, each)).flatten(1)
        total_SM = self._filled(total_SM, -torch.inf)
        total_SN, index_SN = total_SM.topk(self.width)
        total_SN = total_SN.masked_fill(self.place_N >= self.places_S1, -torch.inf)
        token_SN = tokens.gather(1, index_SN)
        ended_SN = (token_SN == self.eos) & (total_SN > -torch.inf)
        parent_SN = (index_SN // each).clamp(max=self.live_SN.size(1) - 1)
        chosen = _Chosen(total_SN, gains.gather(1, index_SN), parent_SN, token_SN, ended_SN, torch.zeros_like(ended_SN))
        if self.ids_RT.size(1) < min(self.limits):
            return chosen
        return self._end_at_limit(chosen, log_probs_RV[:, self.eos], tokens_RN[:, 0])

    def _end_at_limit(self, chosen: _Chosen, end_R: Tensor, likeliest_R: Tensor) -> _Chosen:
        """In sentences at their limit, every hypothesis with its end mark instead."""
        full_S1 = (self.limit_S <= self.ids_RT.size(1))[:, None]
        end_SP = end_R.view_as(self.live_SN).clamp(min=-1e9)  # impossible or not, it has to end
        total_SN = self._filled(self.live_SN + end_SP, -torch.inf)
        wanted_SN = self._filled(likeliest_R.view_as(self.live_SN) == self.eos, False)
        return _Chosen(
            torch.where(full_S1, total_SN, chosen.total_SN),
            torch.where(full_S1, self._filled(end_SP, 0), chosen.gain_SN),
            torch.where(full_S1, self.place_N.clamp(max=self.live_SN.size(1) - 1), chosen.parent_SN),
            chosen.token_SN.masked_fill(full_S1, self.eos),
            torch.where(full_S1, total_SN > -torch.inf, chosen.ended_SN),
            full_S1 & ~wanted_SN,
        )

    def _filled(self, x_SM: Tensor, value: float) -> Tensor:
        """At least as many columns as places: before the first token, or with a tiny vocabulary, there are fewer."""
        missing = self.width - x_SM.size(1)
        return x_SM if missing <= 0 else pad_columns(x_SM, (0, missing), value=value)

    def finish(self, chosen: _Chosen) -> None:
        """Write down the hypotheses that have ended; they keep their places."""
        where = chosen.ended_SN.nonzero()
        if not len(where):
            return
        scores_SN = self.penalty.score(chosen.total_SN, self.ids_RT.size(1) + 1)
        scores_SN = scores_SN.masked_fill(~chosen.ended_SN, -torch.inf)
        self.best_SK = torch.cat([self.best_SK, scores_SN], 1).topk(self.n_best).values
        self.places_S1 = self.places_S1 - chosen.ended_SN.sum(1, keepdim=True)
        parents = rows(chosen.parent_SN, self.live_SN.size(1))[chosen.ended_SN.flatten()]
        columns = [x[chosen.ended_SN].tolist() for x in (chosen.total_SN, chosen.gain_SN, scores_SN, chosen.cut_SN)]
        histories = self.ids_RT[parents].tolist(), self.gains_RT[parents].tolist()
        for sentence, ids, gains, total, gain, score, cut in zip(
            where[:, 0].tolist(), *histories, *columns, strict=True
        ):
            found = Hypothesis(tuple(ids), total, score, (*gains, gain), not cut)
            self.ended[self.numbers[sentence]].append(found)

    def keep(self, chosen: _Chosen) -> Tensor | None:
        """Go on with what has not ended. Returns the sentences that stay in the batch, None where all do."""
        parents_R = rows(chosen.parent_SN, self.live_SN.size(1))
        self.live_SN = chosen.total_SN.masked_fill(chosen.ended_SN, -torch.inf)
        self.ids_RT = torch.cat([self.ids_RT[parents_R], chosen.token_SN.view(-1, 1)], 1)
        self.gains_RT = torch.cat([self.gains_RT[parents_R], chosen.gain_SN.view(-1, 1)], 1)
        best_live_S = self.live_SN.amax(1)  # -inf where none goes on, which nothing can be worse than
        reachable_S = self.penalty.best(best_live_S, self.ids_RT.size(1) + 1, self.limit_S + 1)
        going_on_S = reachable_S > self.best_SK[:, -1]
        if bool(going_on_S.all()):
            return None
        staying_S = going_on_S.nonzero().flatten()
        self._leave(staying_S)
        return staying_S

    def _leave(self, staying_S: Tensor) -> None:
        """Take the sentences that are done out of the batch."""
        staying = staying_S.tolist()
        self.numbers = [self.numbers[i] for i in staying]
        self.limits = [self.limits[i] for i in staying]
        rows_R = (staying_S[:, None] * self.width + self.place_N).flatten()
        self.ids_RT, self.gains_RT = self.ids_RT[rows_R], self.gains_RT[rows_R]
        self.limit_S, self.live_SN = self.limit_S[staying_S], self.live_SN[staying_S]
        self.places_S1, self.best_SK = self.places_S1[staying_S], self.best_SK[staying_S]

    def best_first(self) -> list[list[Hypothesis]]:
        """Of each sentence, the wanted number of its best hypotheses."""
        return [sorted(ended, key=lambda found: -found.score)[: self.n_best] for ended in self.ended]
