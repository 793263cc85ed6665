"""The same bookkeeping as in beam.py on a processor, by one compiled loop a step (see loops.py).

S sentences · N beam · P hypotheses before a step · R rows: sentences × hypotheses · T tokens so far · K best wanted
J hypotheses that end
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmt.search import loops
from nmt.search.batching import close_ranks
from nmt.search.candidates import Predictions
from nmt.search.hypothesis import Hypothesis
from nmt.search.length import Penalty

Numbers = np.ndarray[Any, Any]


class QuickBeams:
    """As `Beams` of beam.py."""

    def __init__(
        self, limits: list[int], beam: int, n_best: int, eos: int, penalty: Penalty, patience: float = 1.0
    ) -> None:
        count = len(limits)
        self.width, self.n_best, self.eos, self.penalty = beam, n_best, eos, penalty
        self.enough = beam * patience  # hypotheses that have ended
        self.ended: list[list[_Found]] = [[] for _ in limits]
        self.numbers = list(range(count))  # whose sentences are in the batch
        self.soonest = min(limits, default=0)
        self.limit_S: Numbers = np.array(limits, np.int64)
        self.live_SP: Numbers = np.zeros((count, 1), np.float32)
        """One each before the first token, then `width`."""
        self.best_SK = np.full((count, n_best), -np.inf, np.float32)
        self.ended_S = np.zeros(count, np.int64)
        self.ids, self.gains = np.empty((count, 0), np.int64), np.empty((count, 0), np.float32)
        self.longest_S: Numbers = np.array([penalty.divisor(limit + 1) for limit in limits], np.float32)
        """What the longest hypothesis that a sentence may have would be divided by."""

    @property
    def ids_RT(self) -> Tensor:
        """The tokens of every hypothesis."""
        return torch.from_numpy(self.ids)

    def sentences(self) -> list[int]:
        """Whose hypothesis each row of the batch is."""
        return [number for number in self.numbers for _ in range(self.live_SP.shape[1])]

    def advance(self, following: Predictions) -> tuple[Tensor | None, Tensor, Tensor]:
        """As of Beams."""
        (sentences, beams), length = self.live_SP.shape, self.ids.shape[1]
        best = tuple(x.numpy() for x in following.continuations(torch.from_numpy(self.live_SP), 2 * self.width))
        next_, ended = _Next.room(sentences, self.width, length), _Ended.room(sentences * max(self.width, beams))
        count, going = loops.advance(
            best, self.live_SP, *self._last_words(following), self.limit_S, self.eos,
            np.float32(self.penalty.divisor(length + 1)), self._reach(length + 2), self.best_SK, self.ended_S,
            self.enough, self.ids, self.gains, next_, ended,
        )  # fmt: skip
        if count:
            self._write_down(ended, count, beams)
        self.live_SP, self.ids, self.gains = next_.live_SN, next_.ids_RT, next_.gains_RT
        place_SN = next_.parent_R.reshape(sentences, -1) - np.arange(0, sentences * beams, beams)[:, None]
        if going == sentences:
            return None, torch.from_numpy(place_SN), torch.from_numpy(next_.token_R)
        staying_S = np.array(close_ranks(next_.going_S.tolist()), np.int64)
        staying_R = (staying_S[:, None] * self.width + np.arange(self.width)).reshape(-1)
        self._leave(staying_S, staying_R)
        token_R = torch.from_numpy(next_.token_R[staying_R])
        return torch.from_numpy(staying_S), torch.from_numpy(place_SN[staying_S]), token_R

    def _last_words(self, following: Predictions) -> tuple[Numbers, Numbers]:
        """The end mark's log-probability for every hypothesis, and whether it is the favourite; if any has to end."""
        shape = self.live_SP.shape
        if self.ids.shape[1] < self.soonest:
            return np.empty((0, 0), np.float32), np.empty((0, 0), np.bool_)
        gain_R, likely_R = following.gains(self.eos), following.favourites() == self.eos
        return np.ascontiguousarray(gain_R.numpy()).reshape(shape), likely_R.numpy().reshape(shape)

    def _reach(self, shortest: int) -> Numbers:
        """What divides the best score that is still possible (see length.py)."""
        if self.penalty.exponent > 0:
            return self.longest_S
        return np.full(len(self.numbers), self.penalty.divisor(shortest), np.float32)

    def _write_down(self, ended: _Ended, count: int, beams: int) -> None:
        """The hypotheses that end."""
        sentence_J, parent_J, *columns = (x_J[:count] for x_J in ended)
        rows_J = sentence_J * beams + parent_J
        lists = (x_J.tolist() for x_J in columns)
        for sentence, ids_T, gains_T, *rest in zip(
            sentence_J.tolist(), self.ids[rows_J], self.gains[rows_J], *lists, strict=True
        ):
            self.ended[self.numbers[sentence]].append(_Found(ids_T, gains_T, *rest))

    def _leave(self, staying_S: Numbers, staying_R: Numbers) -> None:
        """Take the sentences that are done out of the batch."""
        self.numbers = [self.numbers[i] for i in staying_S.tolist()]
        self.ids, self.gains = self.ids[staying_R], self.gains[staying_R]
        self.live_SP, self.limit_S = self.live_SP[staying_S], self.limit_S[staying_S]
        self.longest_S = self.longest_S[staying_S]
        self.best_SK, self.ended_S = self.best_SK[staying_S], self.ended_S[staying_S]
        self.soonest = int(self.limit_S.min()) if len(self.limit_S) else 0

    def best_first(self) -> list[list[Hypothesis]]:
        """As of Beams."""
        return [
            [found.hypothesis() for found in sorted(ended, key=lambda found: -found.score)[: self.n_best]]
            for ended in self.ended
        ]


class _Found(NamedTuple):
    """A hypothesis that has ended; few are among the best, and only these are written out."""

    ids_T: Numbers
    gains_T: Numbers
    total: float
    gain: float
    score: float
    cut: bool

    def hypothesis(self) -> Hypothesis:
        ids, gains = tuple(self.ids_T.tolist()), (*self.gains_T.tolist(), self.gain)
        return Hypothesis(ids, self.total, self.score, gains, not self.cut)


class _Next(NamedTuple):
    """What goes on."""

    parent_R: Numbers
    """The row that each goes on from."""
    token_R: Numbers
    live_SN: Numbers
    ids_RT: Numbers
    gains_RT: Numbers
    going_S: Numbers
    """Whether a sentence does."""

    @classmethod
    def room(cls, sentences: int, width: int, length: int) -> _Next:
        rows = sentences * width
        return cls(
            np.empty(rows, np.int64),
            np.empty(rows, np.int64),
            np.empty((sentences, width), np.float32),
            np.empty((rows, length + 1), np.int64),
            np.empty((rows, length + 1), np.float32),
            np.empty(sentences, np.bool_),
        )


class _Ended(NamedTuple):
    """Hypotheses that end: whose they are, the place they go on from, and what a Hypothesis holds."""

    sentence_J: Numbers
    parent_J: Numbers
    total_J: Numbers
    gain_J: Numbers
    score_J: Numbers
    cut_J: Numbers

    @classmethod
    def room(cls, most: int) -> _Ended:
        whole, real = (np.int64, np.int64), (np.float32, np.float32, np.float32)
        return cls(*(np.empty(most, kind) for kind in (*whole, *real, np.bool_)))
