"""nmt: neural machine translation from raw parallel text to scored translations."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from nmt.search.translate import Translator

__version__ = "0.1.0"
__all__ = ["__version__", "load"]


def load(model: str | Path, device: str = "auto", threads: int | None = None) -> Translator:
    """Load a model folder, ready to translate raw text: ``nmt.load("runs/x").translate(["Hello."])``.

    `model` is a run folder, a checkpoint folder or an exported model. `device` is ``auto``, ``cpu``, ``cuda`` or
    ``cuda:N``; `threads` limits torch's CPU threads. Raises ModelError when the folder is incomplete or its parts do
    not belong together.
    """
    from nmt.checkpoint.load import load_translator  # inside, so that `import nmt` loads no torch

    return load_translator(model, device=device, threads=threads)
