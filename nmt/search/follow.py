"""Given translations on a processor: the steps that search would make, told what to write.

So scores are search's own, to the last digit, and no line feels what else is in its batch.

S sources · L source tokens · N translations of each · R rows: sources × translations · T target tokens · V vocabulary
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from nmt.model.inference.compiled import CompiledTransformer
from nmt.model.inference.ensemble import CompiledEnsemble
from nmt.model.seq2seq import Stepper
from nmt.search.candidates import log_probabilities

Watching = CompiledTransformer | CompiledEnsemble
"""Forms that can tell where a step looks."""


@dataclass
class Followed:
    """A given translation."""

    gains: list[float] = field(default_factory=list)
    """Log-probability of every token and of the end mark, in nats."""
    looked_TL: list[Tensor] = field(default_factory=list)
    """How much the step that writes each of them looks at each source token, where asked for."""


def follow(
    stepper: Stepper,
    src_SL: Tensor,
    keep_SL: Tensor,
    targets: Sequence[Sequence[Sequence[int]]],
    *,
    bos: int,
    eos: int,
    looking: bool = False,
) -> list[list[Followed]]:
    """What `stepper` says of each source's `targets`, without marks, of which all sources have as many.

    `looking` needs a form that can tell. Raises ModelError where predictions are no numbers.
    """
    each = len(targets[0])
    rows = [[*ids, eos] for ids_N in targets for ids in ids_N]
    lengths = [max(map(len, rows[s * each : (s + 1) * each])) for s in range(len(targets))]
    written_RT = torch.full((len(rows), max(lengths)), eos)
    for row, ids in zip(written_RT, rows, strict=True):
        row[: len(ids)] = torch.tensor(ids)
    found = [Followed() for _ in rows]
    state = stepper.start(stepper.encode(src_SL, keep_SL), keep_SL, each)
    going_on, last_R = list(range(len(rows))), torch.full((len(rows),), bos)
    for t in range(written_RT.size(1)):
        if looking:
            assert isinstance(stepper, Watching)
            logits_RV, state, looked_RL = stepper.watch(state, last_R)
            for row, seen_L in zip(going_on, looked_RL, strict=True):
                found[row].looked_TL.append(seen_L)
        else:
            logits_RV, state = stepper.step(state, last_R)
        last_R = written_RT[going_on, t]
        gains_R = log_probabilities(logits_RV, ()).gather(1, last_R[:, None])[:, 0].tolist()
        for row, gain in zip(going_on, gains_R, strict=True):
            found[row].gains.append(gain)
        staying = [place for place in range(0, len(going_on), each) if lengths[going_on[place] // each] > t + 1]
        if len(staying) * each < len(going_on):
            state = state.select(torch.tensor([place // each for place in staying], dtype=torch.long))
            places = [place + i for place in staying for i in range(each)]
            going_on, last_R = [going_on[place] for place in places], last_R[places]
    for one, ids in zip(found, rows, strict=True):
        del one.gains[len(ids) :], one.looked_TL[len(ids) :]
    return [found[s * each : (s + 1) * each] for s in range(len(targets))]
