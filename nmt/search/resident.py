"""Beam search that stays on its device: what beam.py finds, without a look at any number on the way.

S slots for sentences · N beam · R rows: slots × hypotheses · M candidates: 2N · K best wanted · V vocabulary
T steps · B sentences · J hypotheses to be read out

All that beam search knows lies in static memory, and a step of it, like one of the model, is captured once and
replayed (see model/inference/graphs.py). Whether all is done is asked every few steps; what happened since goes on in
vain. At the end the history comes over as a whole, and hypotheses are read out of it backwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.model.inference.captured import CapturedTransformer
from nmt.model.inference.frames import Rows, size
from nmt.search.candidates import Given
from nmt.search.hypothesis import Hypothesis
from nmt.search.length import Penalty

CHECK = 4  # steps after which it is asked whether all is done


@dataclass(frozen=True)
class Rules:
    """What a search goes by, but for its sentences."""

    bos: int
    eos: int
    banned: tuple[int, ...]
    beam: int
    penalty: Penalty
    n_best: int = 1
    patience: float = 1.0


def resident_search(
    model: CapturedTransformer, memory_BLD: Tensor, keep_BL: Tensor, limits: Sequence[int], rules: Rules
) -> list[list[Hypothesis]]:
    """As of `search` in beam.py, from the memory of the sources; nobody else may use `model` meanwhile."""
    model.start(memory_BLD, keep_BL, rules.beam)
    slots, steps = model.slots(rules.beam, len(limits)), size(max(limits) + 1)
    rows = model.rows_of(slots, rules.beam)
    desk = model.once(("search", slots, steps, rules), lambda: _Desk(rows, steps, rules))
    extend = model.once(("extend", desk), lambda: model.graphs.of(desk.extend, desk.changing()))
    desk.begin(limits)
    for step in range(max(limits) + 1):
        model.advance(rows, step)
        extend()
        if step % CHECK == CHECK - 1 and not desk.going_on_S.any():
            break
    return _read(desk, len(limits), step + 1)


class _Desk:
    """What `Beams` of beam.py holds, in static memory, and the history of every step."""

    def __init__(self, rows: Rows, steps: int, rules: Rules) -> None:
        self.rows, self.rules = rows, rules
        (slots, beam), device = rows.token_SP.shape, rows.token_SP.device
        self.banned = torch.tensor(rules.banned, dtype=torch.long, device=device)
        lengths = range(1, steps + 2)
        self.divisor_T = torch.tensor([float(rules.penalty.divisor(length)) for length in lengths], device=device)
        """Of hypotheses that end at a step, and at the one after the last."""
        self.live_SN = torch.zeros(slots, beam, device=device)
        self.best_SK = torch.zeros(slots, rules.n_best, device=device)
        self.limit_S = torch.zeros(slots, dtype=torch.long, device=device)
        self.longest_S = torch.zeros(slots, device=device)
        """What divides the longest hypothesis that a sentence may have."""
        self.ended_S = torch.zeros(slots, dtype=torch.long, device=device)
        self.going_on_S = torch.zeros(slots, dtype=torch.bool, device=device)
        self.wholes_T5SN = torch.zeros(steps, 5, slots, beam, dtype=torch.long, device=device)
        """Token and parent of what goes on; whether an end was written down, its parent, and whether it was forced."""
        self.floats_T4SN = torch.zeros(steps, 4, slots, beam, device=device)
        """Gain of what goes on; log-probability, gain and score of what ends."""

    def changing(self) -> list[Tensor]:
        """What a step both reads and writes."""
        return [self.live_SN, self.best_SK, self.ended_S, self.going_on_S, self.rows.token_SP, self.rows.parent_SP]

    def begin(self, limits: Sequence[int]) -> None:
        """One hypothesis for each sentence, which has read nothing."""
        count = len(limits)
        self.rows.begin(self.rules.bos)
        self.live_SN.fill_(-torch.inf)[:count, 0] = 0
        self.best_SK.fill_(-torch.inf)
        self.limit_S.zero_()[:count] = torch.tensor(limits, device=self.limit_S.device)
        self.longest_S.copy_(self.rules.penalty.divisor(self.limit_S + 1))
        self.ended_S.zero_()
        self.going_on_S.fill_(False)[:count] = True

    def extend(self) -> None:
        """What goes on and what ends, as `Beams` does: extend, finish, keep; asks for no value."""
        rules, place_1 = self.rules, self.rows.place_1
        log_probs_RV = self.rows.logits_RV.log_softmax(-1, dtype=torch.float32)
        log_probs_RV.index_fill_(1, self.banned, -torch.inf)
        total_SM, gain_SM, parent_SM, token_SM = Given(log_probs_RV).continuations(self.live_SN, 2 * rules.beam)
        is_end_SM = token_SM == rules.eos
        full_S1 = (self.limit_S <= place_1)[:, None]
        going_SM = total_SM.masked_fill(is_end_SM | full_S1, -torch.inf)
        live_SN, place_SN = going_SM.topk(rules.beam)
        going = [x_SM.gather(1, place_SN) for x_SM in (token_SM, parent_SM, gain_SM)]
        mask_SN = (is_end_SM & (total_SM > -torch.inf))[:, : rules.beam]
        ending = [x_SM[:, : rules.beam] for x_SM in (total_SM, gain_SM, parent_SM)]
        mask_SN, (total_SN, gain_SN, parent_SN), cut_SN = self._at_limit(full_S1, mask_SN, ending, log_probs_RV)
        mask_SN = mask_SN & self.going_on_S[:, None]
        scores_SN = (total_SN / self.divisor_T[place_1]).masked_fill(~mask_SN, -torch.inf)
        wholes_5SN = torch.stack([*going[:2], mask_SN.long(), parent_SN, cut_SN.long()])
        self.wholes_T5SN.index_copy_(0, place_1, wholes_5SN[None])
        floats_4SN = torch.stack([going[2], total_SN, gain_SN, scores_SN])
        self.floats_T4SN.index_copy_(0, place_1, floats_4SN[None])
        self._keep(live_SN, going[0], going[1], scores_SN, mask_SN)

    def _at_limit(
        self, full_S1: Tensor, mask_SN: Tensor, ending: list[Tensor], log_probs_RV: Tensor
    ) -> tuple[Tensor, list[Tensor], Tensor]:
        """What ends, where in sentences at their limit every hypothesis does; and which of them have to."""
        gain_SN = log_probs_RV[:, self.rules.eos].clamp(min=-1e9).view_as(self.live_SN)
        likely_SN = (log_probs_RV.argmax(1) == self.rules.eos).view_as(self.live_SN)
        forced = self.live_SN + gain_SN, gain_SN, self.rows.own_SP
        mask_SN = torch.where(full_S1, forced[0] > -torch.inf, mask_SN)
        merged = [torch.where(full_S1, new, old) for new, old in zip(forced, ending, strict=True)]
        return mask_SN, merged, full_S1 & ~likely_SN

    def _keep(self, live_SN: Tensor, token_SN: Tensor, parent_SN: Tensor, scores_SN: Tensor, mask_SN: Tensor) -> None:
        """Go on, in sentences that are not done."""
        rules = self.rules
        best_SK = torch.cat([self.best_SK, scores_SN], 1).topk(rules.n_best).values
        ended_S = self.ended_S + mask_SN.sum(1)
        divisor = self.longest_S if rules.penalty.exponent > 0 else self.divisor_T[self.rows.place_1 + 1]
        reachable_S = live_SN[:, 0] / divisor
        going_on_S = self.going_on_S & (reachable_S > best_SK[:, -1]) & (ended_S < rules.beam * rules.patience)
        for old, new in zip(self.changing(), (live_SN, best_SK, ended_S, going_on_S, token_SN, parent_SN), strict=True):
            old.copy_(new)


def _read(desk: _Desk, count: int, steps: int) -> list[list[Hypothesis]]:
    """Of each of the first `count` sentences, the wanted number of its best hypotheses, out of the history."""
    wholes_T5BN: NDArray[np.int64] = desk.wholes_T5SN[:steps, :, :count].cpu().numpy()
    floats_T4BN: NDArray[np.float32] = desk.floats_T4SN[:steps, :, :count].cpu().numpy()
    found = [_best(wholes_T5BN[:, 2, b], floats_T4BN[:, 3, b], desk.rules.n_best) for b in range(count)]
    chosen_J3 = np.array([(b, *where) for b, each in enumerate(found) for where in each], np.int64).reshape(-1, 3)
    b_J, t_J, n_J = chosen_J3.T
    ids_JT, gains_JT = _backwards(wholes_T5BN, floats_T4BN, b_J, t_J, wholes_T5BN[t_J, 3, b_J, n_J])
    total_J, gain_J, score_J = (floats_T4BN[t_J, i, b_J, n_J].tolist() for i in (1, 2, 3))
    cut_J = wholes_T5BN[t_J, 4, b_J, n_J].tolist()
    hypotheses: list[list[Hypothesis]] = [[] for _ in range(count)]
    for j, (b, length, _) in enumerate(chosen_J3.tolist()):
        ids, gains = ids_JT[j, :length].tolist(), gains_JT[j, :length].tolist()
        one = Hypothesis(tuple(ids), total_J[j], score_J[j], (*gains, gain_J[j]), not cut_J[j])
        hypotheses[b].append(one)
    return hypotheses


def _best(ended_TN: NDArray[np.int64], score_TN: NDArray[np.float32], n_best: int) -> list[tuple[int, int]]:
    """When and at which place a sentence's best hypotheses ended, best first; of equals those that came first."""
    ended = list(zip(*(x.tolist() for x in ended_TN.nonzero()), strict=True))
    return sorted(ended, key=lambda where: -score_TN[where])[:n_best]


def _backwards(
    wholes_T5BN: NDArray[np.int64],
    floats_T4BN: NDArray[np.float32],
    b_J: NDArray[np.int64],
    t_J: NDArray[np.int64],
    parent_J: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Tokens and their log-probabilities of hypotheses whose last token before the end mark stands before `t_J`."""
    steps = len(wholes_T5BN)
    ids_JT, gains_JT = np.zeros((len(b_J), steps), np.int64), np.zeros((len(b_J), steps), np.float32)
    for t in range(steps - 1, -1, -1):
        ids_JT[:, t] = wholes_T5BN[t, 0, b_J, parent_J]
        gains_JT[:, t] = floats_T4BN[t, 0, b_J, parent_J]
        parent_J = np.where(t < t_J, wholes_T5BN[t, 1, b_J, parent_J], parent_J)
    return ids_JT, gains_JT
