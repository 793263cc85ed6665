"""Greedy search: the most probable token, again and again.  What a beam of 1 finds, with less work.

B sentences · S sentences still going on · V vocabulary
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from nmt.model.seq2seq import State
from nmt.search.batching import close_ranks
from nmt.search.candidates import predictions
from nmt.search.control.core import Constraints
from nmt.search.hypothesis import Hypothesis
from nmt.search.length import Penalty


def greedy(
    step: Callable[[State, Tensor], tuple[Tensor, State]],
    state: State,
    *,
    bos: int,
    eos: int,
    limits: Sequence[int],
    penalty: Penalty,
    banned: Sequence[int],
    constraints: Constraints | None = None,
    device: torch.device,
) -> list[list[Hypothesis]]:
    """One hypothesis for each sentence; at its limit a sentence gets its end mark, whatever comes after it."""
    going_on = [i for i, _ in enumerate(limits)]
    ids: list[list[int]] = [[] for _ in limits]
    gains: list[list[float]] = [[] for _ in limits]
    finished = [True for _ in limits]
    last_S = torch.full((len(limits),), bos, device=device)
    length = 0
    while going_on:
        logits_SV, state = step(state, last_S)
        adjust = None
        if constraints is not None:
            written_ST = torch.tensor([ids[i] for i in going_on], dtype=torch.long, device=device)
            adjust = partial(constraints, ids_RT=written_ST, sentences=going_on)
        following = predictions(logits_SV, banned, adjust)
        _, gain_S1, _, token_S1 = following.continuations(torch.zeros(len(last_S), 1, device=device), 1)
        last_S = token_S1[:, 0]
        chosen, values, ends = last_S.tolist(), gain_S1[:, 0].tolist(), None
        going = [False for _ in going_on]
        for place, sentence in enumerate(going_on):
            gain = values[place]
            if chosen[place] != eos and length < limits[sentence]:
                ids[sentence].append(chosen[place])
                going[place] = True
            elif chosen[place] != eos:
                ends = following.gains(eos).clamp(min=-1e9).tolist() if ends is None else ends
                gain, finished[sentence] = ends[place], False
            gains[sentence].append(gain)
        if not all(going):
            staying = close_ranks(going)
            staying_S = torch.tensor(staying, dtype=torch.long, device=device)
            going_on = [going_on[place] for place in staying]
            state, last_S = state.select(staying_S), last_S[staying_S]
        length += 1
    return [
        [Hypothesis(tuple(i), sum(g), penalty.score(sum(g), len(g)), tuple(g), f)]
        for i, g, f in zip(ids, gains, finished, strict=True)
    ]
