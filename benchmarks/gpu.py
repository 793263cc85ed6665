"""Translating on a GPU, for `decode.py`: every model, precision, size of batch and beam, one after the other.

All is measured unattended: what does not fit into memory is told as such, and every number is printed when it comes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import invented
import torch
from record import record

import nmt
from nmt.checkpoint.device import choose
from nmt.corpus.lines import read_lines
from nmt.model.inference.build import Cast
from nmt.model.inference.captured import CapturedTransformer
from nmt.model.seq2seq import Stepper
from nmt.search.solve import Solver
from nmt.search.translate import Translator

BEAMS = {"beam 4": 4, "greedy": 1}
PIECES = {"tiny": 8_000, "small": 8_000}  # of the vocabulary; others have the 32,000 that are usual for large data
PLAIN = 16_384  # source tokens of a batch without captured steps


class Watched(Solver):
    """A solver of the form asked for, which tells how long it has searched."""

    def take(self, form: str, rows: int) -> Watched:
        """In this form, "captured" or "plain"; the former of so many rows."""
        self.__dict__.update(form=form, rows=rows, seconds=0.0)
        return self

    @cached_property
    def engine(self) -> Any:
        made: dict[str, Stepper] = {}

        def stepper(precision: str) -> Stepper:
            if precision not in made:
                model: Any = self.model
                if self.__dict__["form"] == "captured":
                    made[precision] = CapturedTransformer(model, precision, self.__dict__["rows"])
                else:
                    made[precision] = model if precision == "float32" else Cast(model, precision)
            return made[precision]

        return stepper

    def found(self, *arguments: Any) -> Any:
        start = time.perf_counter()
        hypotheses = super().found(*arguments)
        self.__dict__["seconds"] += time.perf_counter() - start
        return hypotheses


def main(options: argparse.Namespace) -> None:
    """Measure all that `options` name, and record each model's speeds once they are known."""
    device = choose(options.device)
    with tempfile.TemporaryDirectory() as folder:
        for name, translator, lines in models(options, Path(folder), device):
            invented_weights = name in options.preset
            settings = {
                "model": name,
                "weights": "random" if invented_weights else "trained",
                "output": "as long as the source" if invented_weights else "of its own length",
                "pieces": len(translator.target_vocabulary),
                "lines": len(lines),
                "source_words": sum(len(line.split()) for line in lines),
                "device": options.device,
                "batch_tokens_plain": options.batch_tokens or PLAIN,
                "repeats": options.repeats,
            }
            record("decode", settings, measured(name, translator, lines, options), options.save)


def models(
    options: argparse.Namespace, folder: Path, device: torch.device
) -> Iterator[tuple[str, Translator, list[str]]]:
    """The model folder, if one is named, and random models of all presets."""
    if options.model is not None:
        yield str(options.model), nmt.load(options.model, options.device), lines_of(options, 8_000)
    for preset in options.preset:
        pieces = options.pieces or PIECES.get(preset, 32_000)
        yield preset, invented.translator(preset, pieces, folder, device), lines_of(options, pieces)


def lines_of(options: argparse.Namespace, pieces: int) -> list[str]:
    """The lines of the input; without one, lines of invented words."""
    if options.input is None:
        return invented.text(options.lines, invented.words(2 * pieces), 2)
    return list(islice(read_lines(options.input), options.lines))


def measured(name: str, translator: Translator, lines: Sequence[str], options: argparse.Namespace) -> dict[str, Any]:
    """For each precision, form and beam: speeds, and how many lines another size of batch translates otherwise."""
    results: dict[str, Any] = {}
    old = translator.solver
    forms = [("captured", rows) for rows in options.rows] + [("plain", 0)] * options.plain
    for precision in options.precision:
        texts: dict[str, list[str]] = {}
        for form, rows in forms:
            solver = Watched(old.model, old.source, old.target, old.device).take(form, rows)
            translator.solver = solver
            for mode, beam in BEAMS.items():
                what = f"{precision} {mode} {form}{f' {rows} rows' if rows else ''}"
                with told(name, what, results):
                    results[what], found = speed(translator, lines, beam, precision, options)
                    first = texts.setdefault(mode, found)
                    results[what]["lines_unlike_first"] = sum(a != b for a, b in zip(found, first, strict=True))
            del solver
            translator.solver = old
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
    return results


@contextmanager
def told(name: str, what: str, results: dict[str, Any]) -> Iterator[None]:
    """Print what is found, or that it does not fit into memory."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        results[what] = {"problem": "out of memory", "told": str(error).splitlines()[0]}
    except Exception as error:  # the others are still worth measuring
        results[what] = {"problem": f"{type(error).__name__}: {error}"[:500]}
    print(f"{name}: {what}: {results[what]}", file=sys.stderr, flush=True)


def speed(
    translator: Translator, lines: Sequence[str], beam: int, precision: str, options: argparse.Namespace
) -> tuple[dict[str, Any], list[str]]:
    """Sentences and tokens a second, the first time, which prepares all, left out; and the translations."""
    cuda, watched = translator.device.type == "cuda", translator.solver.__dict__
    settings: dict[str, Any] = {
        "beam": beam,
        "precision": precision,
        "batch_tokens": options.batch_tokens or PLAIN,
    }
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    took, searched = [], []
    for _ in range(options.repeats + 1):
        watched["seconds"], start = 0.0, time.perf_counter()
        found = list(translator.stream(lines, buffer_lines=len(lines), workers=1, **settings))
        took.append(time.perf_counter() - start)
        searched.append(watched["seconds"])
    seconds, tokens = statistics.median(took[1:]), sum(len(one.best.token_log_probabilities) for one in found)
    result = {
        "sentences_per_second": round(len(lines) / seconds, 1),
        "target_tokens_per_second": round(tokens / seconds),
        "of_which_search": round(statistics.median(searched[1:]) / seconds, 3),
        "first_seconds": round(took[0], 2),
        "peak_mib": round(torch.cuda.max_memory_allocated() / 2**20) if cuda else None,
    }
    form = translator.solver.engine(precision)
    if isinstance(form, CapturedTransformer):
        result["captured"] = form.graphs.captures
    return result | alone(translator, lines[: options.single], found, settings), [one.text for one in found]


def alone(translator: Translator, lines: Sequence[str], found: Sequence[Any], settings: dict[str, Any]) -> Any:
    """One line at a time: how long it takes, and how many translations are others than in the batch."""
    if not lines:
        return {}
    again = [translator.translate([line], workers=1, **settings)[0] for line in lines]
    start = time.perf_counter()
    for line in lines:
        translator.translate([line], workers=1, **settings)
    milliseconds = 1000 * (time.perf_counter() - start) / len(lines)
    unlike = sum(one.text != text for one, text in zip(found, again, strict=False))
    return {"milliseconds_alone": round(milliseconds, 2), "unlike_alone": unlike, "lines_alone": len(lines)}
