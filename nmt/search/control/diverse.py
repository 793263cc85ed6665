"""Diverse beam search: groups of hypotheses that keep away from each other's words (Vijayakumar et al. 2018).

S sentences · R rows: sentences × hypotheses · V vocabulary · M candidates

The groups of a sentence take their turns at every step, each with a beam of its own: what ends is written down, the
`width` best of the others go on, and a group is done once `width` of its hypotheses have ended. A token loses
`strength` in the eyes of a group for every hypothesis of an earlier group that has taken it at this step (Hamming
diversity), and what was lost stays lost for the choices to come. The end mark is free. What hypotheses score in the
end is the model's opinion alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from nmt.model.seq2seq import State
from nmt.search.candidates import next_tokens
from nmt.search.control.core import Constraints
from nmt.search.hypothesis import Hypothesis
from nmt.search.length import Penalty

Options = Sequence[Mapping[int, float]]
"""Of each row, the log-probabilities of the tokens that may come next, best first."""


def diverse_search(
    step: Callable[[State, Tensor], tuple[Tensor, State]],
    state: State,
    *,
    bos: int,
    eos: int,
    banned: Sequence[int],
    limits: Sequence[int],
    groups: int,
    width: int,
    strengths: Sequence[float],
    penalty: Penalty,
    constraints: Constraints | None = None,
) -> list[list[Hypothesis]]:
    """All that `groups` beams of `width` hypotheses find for each sentence, distinct, best first.

    `strengths` holds each sentence's price on a token that another group has taken.
    """
    tensors = [*state.sentences, *state.rows]
    device = tensors[0].device if tensors else torch.device("cpu")
    sentences = [
        _Sentence(limit, groups, width, strength, eos, penalty)
        for limit, strength in zip(limits, strengths, strict=True)
    ]
    going_on, each = list(range(len(limits))), groups * width
    last_R = torch.full((len(limits),), bos, device=device)
    while going_on:
        logits_RV, state = step(state, last_R)
        adjust = None
        if constraints is not None:
            ids_RT = torch.tensor([row.ids for i in going_on for row in sentences[i].rows], dtype=torch.long)
            owners = [i for i in going_on for _ in sentences[i].rows]
            adjust = partial(constraints, ids_RT=ids_RT.to(device), sentences=owners)
        log_probs_RV, best_RM, tokens_RM = next_tokens(logits_RV, 2 * each, banned, adjust)
        found = [dict(zip(t, g, strict=True)) for t, g in zip(tokens_RM.tolist(), best_RM.tolist(), strict=True)]
        ends = log_probs_RV[:, eos].clamp(min=-1e9).tolist()
        staying = []
        for place, i in enumerate(going_on):
            here = slice(place * state.beams, (place + 1) * state.beams)
            if sentences[i].extend(found[here], ends[here]):
                staying.append(place)
        if len(staying) < len(going_on):
            state = state.select(torch.tensor(staying, dtype=torch.long, device=device))
            going_on = [going_on[place] for place in staying]
        rows = [row for i in going_on for row in sentences[i].rows]
        parents = [place // each * state.beams + row.parent for place, row in enumerate(rows)]
        state = state.reorder(torch.tensor(parents, dtype=torch.long, device=device), each)
        last_R = torch.tensor([row.ids[-1] for row in rows], dtype=torch.long, device=device)
    return [sentence.best_first() for sentence in sentences]


@dataclass(frozen=True)
class _Row:
    """A hypothesis that goes on."""

    total: float = 0.0
    """Log-probability."""
    worth: float = 0.0
    """The same less what its tokens have lost to other groups: what the beam goes by."""
    ids: tuple[int, ...] = ()
    gains: tuple[float, ...] = ()
    parent: int = 0
    """Which row of its sentence it continues."""


@dataclass
class _Group:
    """A beam: hypotheses that go on, and those that have ended."""

    rows: list[tuple[int, _Row]]
    """With the place of each among the rows of its sentence."""
    ended: list[Hypothesis]


class _Sentence:
    """The groups of one sentence."""

    def __init__(self, limit: int, groups: int, width: int, strength: float, eos: int, penalty: Penalty) -> None:
        self.limit, self.width, self.strength, self.eos, self.penalty = limit, width, strength, eos, penalty
        self.rows = [_Row()]  # one before the first token, then groups × width, of which the last may be idle
        self.groups = [_Group([(0, self.rows[0])], []) for _ in range(groups)]

    def extend(self, options: Options, ends: Sequence[float]) -> bool:
        """One token more in every group, one after the other. Whether any goes on."""
        taken: Counter[int] = Counter()
        grown = []
        for group in self.groups:
            if len(self.rows[0].ids) < self.limit:
                grown.append(self._grown(group, options, taken))
            else:
                grown.append(self._all_ended(group, options, ends))
            taken.update(row.ids[-1] for row in grown[-1])
        self.rows = [row for rows in grown for row in rows]
        place = 0
        for group, rows in zip(self.groups, grown, strict=True):
            group.rows = list(enumerate(rows, place))
            place += len(rows)
        self.rows += self.rows[:1] * (len(self.groups) * self.width - place)
        return place > 0

    def _grown(self, group: _Group, options: Options, taken: Mapping[int, int]) -> list[_Row]:
        """The best hypotheses of one token more; those among them that end are written down."""
        found = [
            (row.worth + gain - (self.strength * taken[token] if token != self.eos else 0), place, row, token, gain)
            for place, row in group.rows
            for token, gain in options[place].items()
            if gain > -torch.inf
        ]
        rows: list[_Row] = []
        for rank, (worth, place, row, token, gain) in enumerate(sorted(found, key=lambda one: -one[0])):
            if token != self.eos and len(rows) < self.width:
                rows.append(_Row(row.total + gain, worth, (*row.ids, token), (*row.gains, gain), place))
            elif token == self.eos and rank < self.width:
                self._end(group, row, gain, True)
        return rows if len(group.ended) < self.width else []

    def _all_ended(self, group: _Group, options: Options, ends: Sequence[float]) -> list[_Row]:
        for place, row in group.rows:
            self._end(group, row, ends[place], next(iter(options[place])) == self.eos)
        return []

    def _end(self, group: _Group, row: _Row, gain: float, finished: bool) -> None:
        total = row.total + gain
        score = self.penalty.score(total, len(row.ids) + 1)
        group.ended.append(Hypothesis(row.ids, total, score, (*row.gains, gain), finished))

    def best_first(self) -> list[Hypothesis]:
        """What all groups found, each once."""
        best = [sorted(group.ended, key=lambda found: -found.score)[: self.width] for group in self.groups]
        by_ids = {found.ids: found for ended in best for found in ended}
        return sorted(by_ids.values(), key=lambda found: -found.score)
