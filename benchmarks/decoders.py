"""Programs that translate with the same weights, each in a process of its own: ours, and CTranslate2 if installed.

In one process they would disturb each other: CTranslate2 sets the number of threads of everybody's OpenMP.
"""

from __future__ import annotations

import importlib.util
import logging
import multiprocessing
import resource
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

Translate = Callable[[Sequence[str], int], int]
"""Lines and a beam to the number of tokens of their translations, end marks counted."""

_translate: Translate  # of this process


@dataclass(frozen=True)
class Took:
    """What translating took."""

    seconds: float
    tokens: int
    peak_mib: int
    """Of the process since its beginning."""


class Program:
    """A process in which `opened` makes what translates."""

    def __init__(self, opened: Callable[..., Translate], *arguments: object) -> None:
        self.pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _open, (opened, arguments))

    def __call__(self, lines: Sequence[str], beam: int, one_by_one: bool) -> Took:
        """Translate `lines`, perhaps each for itself."""
        return self.pool.submit(_run, lines, beam, one_by_one).result()


def ours(model: Path, device: str, threads: int | None, settings: dict[str, object]) -> Translate:
    """nmt, from raw text to raw text."""
    import nmt

    translator = nmt.load(model, device, threads)

    def translate(lines: Sequence[str], beam: int) -> int:
        found = translator.stream(lines, beam=beam, **settings)
        return sum(len(translation.best.token_log_probabilities) for translation in found)

    return translate


def ctranslate2(exported: Path, kind: str, workers: int, threads: int) -> Translate:
    """CTranslate2, from pieces to pieces: its text is neither cleaned nor put together."""
    import ctranslate2
    import sentencepiece

    ctranslate2.set_log_level(logging.ERROR)
    engine = ctranslate2.Translator(str(exported), compute_type=kind, inter_threads=workers, intra_threads=threads)
    vocabulary = sentencepiece.SentencePieceProcessor(model_file=str(exported / "vocabulary.model"))
    batch = {"max_batch_size": 64, "max_decoding_length": 100, "length_penalty": 0.6, "disable_unk": True}

    def translate(lines: Sequence[str], beam: int) -> int:
        found = engine.translate_batch(vocabulary.encode(list(lines), out_type=str), beam_size=beam, **batch)
        return sum(len(result.hypotheses[0]) + 1 for result in found)

    return translate


def others(model: Path, folder: Path, threads: int) -> dict[str, Program]:
    """CTranslate2 in each set-up that `threads` allow, by name; nothing where it is not installed."""
    if importlib.util.find_spec("ctranslate2") is None:
        return {}
    from nmt.checkpoint.export import export

    for _ in export(model, folder, "ctranslate2"):
        pass
    return {
        f"ctranslate2 {kind} {workers} x {threads // workers}": Program(
            ctranslate2, folder, kind, workers, threads // workers
        )
        for kind in ("float32", "int8")
        for workers in (1, 2)
        if workers <= threads
    }


def _open(opened: Callable[..., Translate], arguments: tuple[object, ...]) -> None:
    global _translate
    _translate = opened(*arguments)


def _run(lines: Sequence[str], beam: int, one_by_one: bool) -> Took:
    start = time.perf_counter()
    tokens = sum(_translate([line], beam) for line in lines) if one_by_one else _translate(lines, beam)
    seconds = time.perf_counter() - start
    return Took(seconds, tokens, round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
