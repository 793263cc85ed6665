"""Other programs that translate with the same weights: CTranslate2, when it is installed."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from nmt.checkpoint.export import export
from nmt.search.translate import Translator

Translate = Callable[[Sequence[str], int], int]
"""Lines and a beam to the tokens of their translations, end marks counted."""
SETUPS = [("float32", 1), ("float32", 2), ("int8", 1), ("int8", 2)]  # arithmetic, workers


def ctranslate2(model: Path, folder: Path, ours: Translator, threads: int) -> dict[str, Translate]:
    """CTranslate2 in each setup that `threads` allow, by name; nothing where it is not installed.

    It gets pieces and gives pieces: its text is neither cleaned nor put together, ours is.
    """
    if importlib.util.find_spec("ctranslate2") is None:
        return {}
    import ctranslate2

    ctranslate2.set_log_level(logging.ERROR)
    for _ in export(model, folder, "ctranslate2"):
        pass
    return {
        f"ctranslate2 {kind} {workers} x {threads // workers}": _setup(
            ctranslate2.Translator(
                str(folder), compute_type=kind, inter_threads=workers, intra_threads=threads // workers
            ),
            ours,
        )
        for kind, workers in SETUPS
        if workers <= threads
    }


def _setup(engine: object, ours: Translator) -> Translate:
    def translate(lines: Sequence[str], beam: int) -> int:
        sources = [ours.source_vocabulary.pieces(line) for line in lines]
        found = engine.translate_batch(  # type: ignore[attr-defined]
            sources,
            beam_size=beam,
            length_penalty=0.6,
            max_batch_size=64,
            max_decoding_length=100,
            disable_unk=True,
        )
        return sum(len(result.hypotheses[0]) + 1 for result in found)

    return translate
