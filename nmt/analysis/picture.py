"""Attention as a picture, drawn by matplotlib, which comes with the extra `plots`."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

from nmt.analysis.look import Grid, Look
from nmt.analysis.page import Choice
from nmt.errors import NmtError

if TYPE_CHECKING:
    from torch import Tensor

COLORS = "Blues"  # one hue from light to dark: the same for all kinds of colour vision, and in print
INCHES_A_TOKEN = 0.16
LONGEST = 24  # characters of a label


def picture(look: Look, choice: Choice, model: str = "") -> bytes:
    """A PNG of one kind of attention: the head that `choice` names, or every head of a layer, or of all layers.

    Its title tells the model by the name given, and the sentence.

    Raises NmtError when matplotlib is not installed.
    """
    plotter = _matplotlib()
    grid = look.grid(choice.units)
    weights_LHQK = grid.weights[choice.kind]
    layers = range(weights_LHQK.size(0)) if choice.layer is None else [choice.layer]
    heads = range(weights_LHQK.size(1)) if choice.head is None else [choice.head]
    rows, columns = grid.axes(choice.kind)
    size = (len(heads) * _inches(columns) + 3, len(layers) * (_inches(rows) + 0.3) + 2)
    figure = plotter.Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(layers), len(heads), squeeze=False, sharex=True, sharey=True)
    image = None
    for i, layer in enumerate(layers):
        for j, head in enumerate(heads):
            image = _panel(axes[i][j], grid, choice, weights_LHQK[layer, head])
            axes[i][j].set_title(f"layer {layer + 1}, head {head + 1}", fontsize=8)
    for row in axes:
        row[0].set_yticks(range(len(rows)), [_plain(text) for text in rows], fontsize=7)
    for panel in axes[-1]:
        panel.set_xticks(range(len(columns)), [_plain(text) for text in columns], fontsize=7, rotation=90)
    figure.colorbar(image, ax=axes, shrink=min(1.0, 4 / size[1]), label=f"{choice.kind} attention")
    figure.suptitle(title(look, choice, model), fontsize=8, wrap=True)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()


def check_drawable() -> None:
    """Raises NmtError when matplotlib is not installed: to be told before a model is loaded."""
    _matplotlib()


def title(look: Look, choice: Choice, model: str) -> str:
    """What a picture is of: kind, model, and the one sentence."""
    of = f" of {model}" if model else ""
    return f"{choice.kind} attention{of}, n = 1 sentence\n{look.source} → {look.target}".replace("$", r"\$")


def _panel(panel: Any, grid: Grid, choice: Choice, weights_QK: Tensor) -> Any:
    shown = weights_QK.float().numpy().copy()
    if choice.kind == "decoder":
        for row, seen in enumerate(grid.visible):
            shown[row, seen:] = math.nan
    panel.set_facecolor("0.85")  # what is masked
    return panel.imshow(shown, cmap=COLORS, vmin=0, vmax=1, aspect="auto", interpolation="nearest")


def _inches(names: tuple[str, ...]) -> float:
    return max(1.5, INCHES_A_TOKEN * len(names))


def _plain(text: str) -> str:
    """A name that is not too long, and that matplotlib does not take for a formula."""
    return (text if len(text) <= LONGEST else text[: LONGEST - 1] + "…").replace("$", r"\$")


def _matplotlib() -> Any:
    try:
        from matplotlib import figure
    except ImportError as error:
        raise NmtError(
            "pictures are drawn by matplotlib, which is not installed", 'pip install "nmt[plots]"'
        ) from error
    return figure
