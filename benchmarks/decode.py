"""How many sentences a second a model folder translates: beam 4, greedy, and one sentence at a time.

Every precision is measured, and CTranslate2 with the same weights where it is installed: all in turn, again and again,
so that a change of the machine's speed meets all alike. The median of the repeats is told.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from decoders import Translate, ctranslate2
from record import record

import nmt
from nmt.corpus.lines import read_lines
from nmt.schema import parse_count
from nmt.search.translate import Translator

MODES = {"beam 4": (4, False), "greedy": (1, False), "one at a time": (4, True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="a run folder, a checkpoint or a model folder")
    parser.add_argument("input", type=Path, help="raw source text")
    parser.add_argument("--lines", type=int, default=1000, help="at most so many lines (default 1000)")
    parser.add_argument("--single", type=int, default=50, help="lines translated one at a time (default 50)")
    parser.add_argument("--repeats", type=int, default=3, help="the median of so many is told (default 3)")
    parser.add_argument("--precision", nargs="+", default=["float32", "bfloat16", "int8"])
    parser.add_argument("--mode", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--batch-tokens", type=parse_count)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--alone", action="store_true", help="measure no other program")
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results")
    options = parser.parse_args()
    lines = list(islice(read_lines(options.input), options.lines))
    translator = nmt.load(options.model, options.device, options.threads)
    programs = {
        f"nmt {precision}": ours(translator, precision, options.batch_tokens) for precision in options.precision
    }
    with tempfile.TemporaryDirectory() as folder:
        if not options.alone:
            programs |= ctranslate2(options.model, Path(folder) / "ct2", translator, torch.get_num_threads())
        results = measure(programs, lines, options.single, options.repeats, options.mode)
    settings = {
        "lines": len(lines),
        "source_words": sum(len(line.split()) for line in lines),
        "parameters": sum(parameter.numel() for parameter in translator.model.parameters()),
        "device": str(translator.device),
        "batch_tokens": options.batch_tokens or translator.settings.batch_tokens,
        "threads": torch.get_num_threads(),
        "repeats": options.repeats,
        "peak_mib_of_all": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    record("decode", settings, results, options.save)


def ours(translator: Translator, precision: str, batch_tokens: int | None) -> Translate:
    """nmt from raw text to raw text."""

    def translate(lines: Sequence[str], beam: int) -> int:
        found = translator.stream(lines, beam=beam, precision=precision, batch_tokens=batch_tokens)
        return sum(len(translation.best.token_log_probabilities) for translation in found)

    return translate


def measure(
    programs: dict[str, Translate], lines: Sequence[str], single: int, repeats: int, modes: Sequence[str]
) -> dict[str, Any]:
    """For each mode and program the median of the repeats, programs in turn."""
    results: dict[str, Any] = {}
    for mode in modes:
        beam, alone = MODES[mode]
        some = lines[:single] if alone else lines
        times: dict[str, list[float]] = defaultdict(list)
        tokens = {name: run(program, some[:64], beam, alone) and 0 for name, program in programs.items()}  # warm up
        for _ in range(repeats):
            for name, program in programs.items():
                start = time.perf_counter()
                tokens[name] = run(program, some, beam, alone)
                times[name].append(time.perf_counter() - start)
        results[mode] = {name: summary(len(some), tokens[name], seconds) for name, seconds in times.items()}
    return results


def run(program: Callable[[Sequence[str], int], int], lines: Sequence[str], beam: int, alone: bool) -> int:
    return sum(program([line], beam) for line in lines) if alone else program(lines, beam)


def summary(lines: int, tokens: int, times: Sequence[float]) -> dict[str, Any]:
    seconds = statistics.median(times)
    return {
        "sentences_per_second": round(lines / seconds, 1),
        "target_tokens_per_second": round(tokens / seconds),
        "milliseconds_a_sentence": round(1000 * seconds / lines, 2),
        "lines": lines,
    }


if __name__ == "__main__":
    main()
