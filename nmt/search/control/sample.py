"""Sampling: tokens drawn at random by their probabilities, instead of a search for the best.

S sentences · N samples of each · R rows: sentences × samples · V vocabulary · 1 broadcast
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from nmt.model.seq2seq import State
from nmt.search.batching import close_ranks
from nmt.search.candidates import log_probabilities
from nmt.search.control.core import Constraints
from nmt.search.hypothesis import Hypothesis
from nmt.search.length import Penalty


@dataclass(frozen=True)
class Draw:
    """How a sentence's tokens are drawn. Neutral values draw from the model's own distribution."""

    seed: str
    """Chooses the random numbers."""
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0


def sample(
    step: Callable[[State, Tensor], tuple[Tensor, State]],
    state: State,
    *,
    bos: int,
    eos: int,
    banned: Sequence[int],
    limits: Sequence[int],
    draws: Sequence[Draw],
    penalty: Penalty,
    constraints: Constraints | None = None,
) -> list[list[Hypothesis]]:
    """As many samples of each sentence as `state` has beams, drawn independently; best first, perhaps twice the same.

    Sample n of a sentence depends on the sentence and its `draws` only: neither on its neighbours nor on how many
    samples are wanted. Log-probabilities are the model's own, whatever was drawn from.
    """
    tensors = [*state.sentences, *state.rows]
    device = tensors[0].device if tensors else torch.device("cpu")
    written = _Written(limits, state.beams, draws)
    last_R = torch.full((len(limits) * state.beams,), bos, device=device)
    while written.going_on:
        logits_RV, state = step(state, last_R)
        adjust = None
        if constraints is not None:
            ids_RT = torch.tensor(written.ids_of_rows(), dtype=torch.long, device=device)
            adjust = partial(constraints, ids_RT=ids_RT, sentences=written.sentences())
        log_probs_RV = log_probabilities(logits_RV, banned, adjust)
        token_R = _drawn(log_probs_RV, [draws[i] for i in written.sentences()], written.numbers())
        gain_R = log_probs_RV.gather(1, token_R[:, None])[:, 0]
        staying = written.add(token_R.tolist(), gain_R.tolist(), log_probs_RV[:, eos].clamp(min=-1e9).tolist(), eos)
        last_R = token_R
        if staying is not None:
            staying_S = torch.tensor(staying, dtype=torch.long, device=device)
            rows_R = (staying_S[:, None] * state.beams + torch.arange(state.beams, device=device)).flatten()
            state, last_R = state.select(staying_S), last_R[rows_R]
    return written.best_first(penalty)


def _drawn(log_probs_RV: Tensor, draws: Sequence[Draw], numbers: Sequence[float]) -> Tensor:
    """A token for each row, by its number between 0 and 1.

    Tokens lie in the order of the vocabulary, not of their probability: two that are nearly equal could change places
    with the size of the batch, and the drawn one with them.
    """
    device = log_probs_RV.device
    temperature_R1 = torch.tensor([draw.temperature for draw in draws], device=device)[:, None]
    probs_RV = _kept(log_probs_RV / temperature_R1, draws).softmax(-1, dtype=torch.float64)
    sum_RV = probs_RV.cumsum(-1)
    total_R1 = sum_RV[:, -1:]
    wanted_R1 = torch.tensor(numbers, dtype=torch.float64, device=device)[:, None] * total_R1
    wanted_R1 = torch.minimum(wanted_R1, total_R1.nextafter(torch.zeros_like(total_R1)))
    return torch.searchsorted(sum_RV, wanted_R1, right=True)[:, 0]


def _kept(scores_RV: Tensor, draws: Sequence[Draw]) -> Tensor:
    """The scores, -inf for tokens that are not among a row's `top_k`, or its fewest that have `top_p` together."""
    if all(draw.top_k == 0 and draw.top_p == 1 for draw in draws):
        return scores_RV
    size = scores_RV.size(1)
    sorted_RV = scores_RV.sort(-1, descending=True).values
    last_R1 = torch.tensor([min(draw.top_k or size, size) - 1 for draw in draws], device=scores_RV.device)[:, None]
    beyond_RV = torch.arange(size, device=scores_RV.device) > last_R1
    sorted_RV = sorted_RV.masked_fill(beyond_RV, -torch.inf)
    probs_RV = sorted_RV.softmax(-1, dtype=torch.float64)
    top_p_R1 = torch.tensor([draw.top_p for draw in draws], dtype=torch.float64, device=scores_RV.device)[:, None]
    enough_RV = (probs_RV.cumsum(-1) - probs_RV >= top_p_R1) & (top_p_R1 < 1)
    sorted_RV = sorted_RV.masked_fill(enough_RV, torch.inf)
    least_R1 = sorted_RV.masked_fill(beyond_RV, torch.inf).amin(-1, keepdim=True)
    return scores_RV.masked_fill(scores_RV < least_R1, -torch.inf)


class _Written:
    """What has been drawn so far, and the random numbers of every sample."""

    def __init__(self, limits: Sequence[int], count: int, draws: Sequence[Draw]) -> None:
        self.limits, self.count = limits, count
        self.going_on = list(range(len(limits)))
        rows = range(len(limits) * count)
        self.chance = [random.Random(f"{draws[row // count].seed} {row % count}") for row in rows]
        self.ids: list[list[int]] = [[] for _ in rows]  # goes on beyond the end mark, until the sentence is done
        self.gains: list[list[float]] = [[] for _ in rows]
        self.ended: dict[int, bool] = {}  # row → whether the model ended it
        self.length = 0

    def rows(self) -> list[int]:
        """The rows of the batch, by their numbers at the beginning."""
        return [i * self.count + n for i in self.going_on for n in range(self.count)]

    def sentences(self) -> list[int]:
        return [row // self.count for row in self.rows()]

    def ids_of_rows(self) -> list[list[int]]:
        return [self.ids[row] for row in self.rows()]

    def numbers(self) -> list[float]:
        return [self.chance[row].random() for row in self.rows()]

    def add(self, tokens: list[int], gains: list[float], ends: list[float], eos: int) -> list[int] | None:
        """One token more. Returns the places of the sentences that go on, None where all do."""
        for row, token, gain, end in zip(self.rows(), tokens, gains, ends, strict=True):
            if row in self.ended:
                self.ids[row].append(token)
                continue
            if token != eos and self.length < self.limits[row // self.count]:
                self.gains[row].append(gain)
            else:
                self.ended[row] = token == eos
                self.gains[row].append(gain if token == eos else end)
            self.ids[row].append(token)
        self.length += 1
        going = [any(i * self.count + n not in self.ended for n in range(self.count)) for i in self.going_on]
        if all(going):
            return None
        places = close_ranks(going)
        self.going_on = [self.going_on[place] for place in places]
        return places

    def best_first(self, penalty: Penalty) -> list[list[Hypothesis]]:
        """Of each sentence, its samples; ids end before the end mark."""
        samples = [
            Hypothesis(tuple(ids[: len(g) - 1]), sum(g), penalty.score(sum(g), len(g)), tuple(g), self.ended[row])
            for row, (ids, g) in enumerate(zip(self.ids, self.gains, strict=True))
        ]
        groups = [samples[i * self.count : (i + 1) * self.count] for i, _ in enumerate(self.limits)]
        return [sorted(group, key=lambda found: -found.score) for group in groups]
