"""Where the tokens of hypotheses look in their sources.  T target · S source"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from nmt.batches.batch import collate
from nmt.search.align import attention_BTS
from nmt.search.batching import batches
from nmt.search.company import ROWS
from nmt.search.control.config import ControlConfig
from nmt.search.follow import Watching, follow
from nmt.search.hypothesis import Hypothesis
from nmt.search.part import Part
from nmt.search.threads import one_thread, side_by_side

if TYPE_CHECKING:
    from nmt.search.solve import Solver

Pair = tuple[Part, Hypothesis]


def look(solver: Solver, parts: Sequence[Part], count: int, settings: ControlConfig) -> None:
    """Fill in the maps of the first `count` hypotheses of all parts.

    On a processor they are the same in any company: by the compiled steps, or each source by itself.
    """
    for part in parts:
        part.maps = []
    parts = [part for part in parts if part.hypotheses[:count]]
    if solver.device.type != "cpu":
        _look_together(solver, [(part, found) for part in parts for found in part.hypotheses[:count]], settings)
    elif isinstance(stepper := solver.scorer(settings.precision), Watching):
        _look_by_steps(solver, stepper, parts, count, settings)
    else:
        with one_thread():
            for part in parts:
                _fill(solver, [(part, found) for found in part.hypotheses[:count]])


def _look_by_steps(
    solver: Solver, stepper: Watching, parts: Sequence[Part], count: int, settings: ControlConfig
) -> None:
    def work(alike: Sequence[Part]) -> None:
        targets = [[found.ids for found in part.hypotheses[:count]] for part in alike]
        encoded = solver.sources([part.ids for part in alike])
        marks = solver.target
        followed = follow(stepper, *encoded, targets, bos=marks.bos, eos=marks.eos, looking=True)
        for part, found in zip(alike, followed, strict=True):
            part.maps = [_of_text(part, torch.stack(one.looked_TL)[:-1]) for one in found]

    side_by_side(work, list(_alike(parts, count, settings)), settings.workers)


def _alike(parts: Sequence[Part], count: int, settings: ControlConfig) -> Iterator[Sequence[Part]]:
    """Parts with as many hypotheses, of which those of similar length come together."""

    def length(part: Part) -> int:
        return max(len(part.ids), *(len(found.ids) for found in part.hypotheses[:count])) + 1

    for each in {len(part.hypotheses[:count]) for part in parts}:
        group = sorted((part for part in parts if len(part.hypotheses[:count]) == each), key=lambda part: -length(part))
        yield from batches(group, length, settings.batch_tokens, max(ROWS // each, 1))


def _look_together(solver: Solver, pairs: Sequence[Pair], settings: ControlConfig) -> None:
    """Batch by batch, whoever shares it."""

    def length(i: int) -> int:
        part, found = pairs[i]
        return max(len(part.ids), len(found.ids)) + 1

    order = sorted(range(len(pairs)), key=lambda i: -length(i))
    maps: dict[int, Tensor] = {}
    for rows in batches(order, length, settings.batch_tokens, len(order)):
        maps |= zip(rows, _maps(solver, [pairs[i] for i in rows]), strict=True)
    for i, (part, _) in enumerate(pairs):
        part.maps.append(maps[i])


def _fill(solver: Solver, pairs: Sequence[Pair]) -> None:
    for (part, _), map_TS in zip(pairs, _maps(solver, pairs), strict=True):
        part.maps.append(map_TS)


def _maps(solver: Solver, pairs: Sequence[Pair]) -> list[Tensor]:
    """By the model's own attention, as one batch."""
    marks = solver.target
    sources, targets = [part.ids for part, _ in pairs], [found.ids for _, found in pairs]
    batch = collate(sources, targets, bos=marks.bos, eos=marks.eos, pad=marks.pad)
    looked_BTS = attention_BTS(solver.model, batch.to(solver.device)).cpu()
    return [_of_text(part, map_TS[: len(found.ids)]) for (part, found), map_TS in zip(pairs, looked_BTS, strict=True)]


def _of_text(part: Part, map_TS: Tensor) -> Tensor:
    """Without the source's end mark, and without what stands before its text."""
    return map_TS[:, part.lead : len(part.ids)].clone()
