"""The page of a sentence's attention: one HTML file that needs nothing but itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nmt.analysis.capture import KINDS, Kind
from nmt.analysis.look import Grid, Look, Units, numbers
from nmt.analysis.markup import asset, fill
from nmt.errors import DataError

DIGITS = 4  # of weights in a page
MOST = 6_000_000  # numbers that browsers still open


@dataclass(frozen=True)
class Choice:
    """What of a look is shown first, or alone where there is room for one thing only. Numbers from 0."""

    kind: Kind = "cross"
    layer: int | None = None
    """None is the last one."""
    head: int | None = None
    """None is the mean of all."""
    units: Units = "subwords"


def page(look: Look, choice: Choice, facts: Mapping[str, str]) -> str:
    """The HTML file; `facts` are name and value of what should be known about the model.

    Raises DataError where there are so many weights that no browser would open it.
    """
    count = sum(weights.numel() for weights in look.subwords.weights.values())
    if count > MOST:
        raise DataError(
            f"{count:,} weights are more than the {MOST:,} that a page is good for",
            "take --format json or a shorter sentence",
        )
    layer = choice.layer
    if layer is None:
        layer = look.subwords.weights[choice.kind].size(0) - 1
    data = {
        "source": look.source,
        "target": look.target,
        "given": look.given,
        "facts": list(facts.items()),
        "start": {"kind": choice.kind, "layer": layer, "head": choice.head, "units": choice.units},
        "grids": {"subwords": _grid(look.subwords), "words": _grid(look.words)},
    }
    return fill(
        asset("attention.html"),
        style=asset("common.css") + asset("map.css") + asset("attention.css"),
        script=asset("attention.js"),
        data=json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
    )


def _grid(grid: Grid) -> dict[str, Any]:
    axes = {kind: grid.axes(kind) for kind in KINDS}
    return {
        "rows": {kind: axes[kind][0] for kind in KINDS},
        "columns": {kind: axes[kind][1] for kind in KINDS},
        "visible": grid.visible,
        "weights": {kind: numbers(grid.weights[kind], DIGITS) for kind in KINDS},
    }
