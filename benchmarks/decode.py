"""How many sentences a second a model folder translates: beam 4, greedy, and one sentence at a time.

Every precision is measured, and CTranslate2 with the same weights where it is installed: all in turn, again and again,
so that a change of the machine's speed meets all alike. The median of the repeats is told.

With --device cuda, or with --preset, see gpu.py: neither a model nor text is needed, nor anybody who looks on.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from decoders import Program, Took, others, ours
from record import record

from nmt.corpus.lines import read_lines
from nmt.schema import parse_count

MODES = {"beam 4": (4, False), "greedy": (1, False), "one at a time": (4, True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, nargs="?", help="a run folder, a checkpoint or a model folder")
    parser.add_argument("input", type=Path, nargs="?", help="raw source text")
    parser.add_argument("--lines", type=int, help="at most so many lines (default 1000, on a GPU 4096)")
    parser.add_argument("--single", type=int, default=50, help="lines translated one at a time (default 50)")
    parser.add_argument("--repeats", type=int, default=3, help="the median of so many is told (default 3)")
    parser.add_argument("--precision", nargs="+", help="default float32, bfloat16, int8; on a GPU float16, not int8")
    parser.add_argument("--mode", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--batch-tokens", type=parse_count)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--alone", action="store_true", help="measure no other program")
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results")
    on_gpu = parser.add_argument_group("on a GPU, or with --preset")
    on_gpu.add_argument("--preset", nargs="+", help="random models (default small and base-2017 if no model is named)")
    on_gpu.add_argument("--pieces", type=parse_count, help="size of their vocabulary (default 8k or 32k)")
    on_gpu.add_argument("--rows", type=int, nargs="+", default=[256, 512, 1024, 2048], help="hypotheses of a batch")
    on_gpu.add_argument("--plain", action="store_true", help="measure the model without captured steps too")
    options = parser.parse_args()
    if options.preset or options.device.startswith("cuda"):
        import gpu

        options.preset = options.preset or ([] if options.model else ["small", "base-2017"])
        options.precision = options.precision or ["bfloat16", "float16", "float32"]
        options.lines = options.lines or 4096
        return gpu.main(options)
    if options.model is None or options.input is None:
        parser.error("a model and its input are needed on a processor")
    options.precision, options.lines = options.precision or ["float32", "bfloat16", "int8"], options.lines or 1000
    lines = list(islice(read_lines(options.input), options.lines))
    threads = options.threads or torch.get_num_threads()
    programs = {
        f"nmt {precision}": Program(
            ours,
            options.model,
            options.device,
            threads,
            {"precision": precision, "batch_tokens": options.batch_tokens, "workers": options.workers},
        )
        for precision in options.precision
    }
    with tempfile.TemporaryDirectory() as folder:
        if not options.alone:
            programs |= others(options.model, Path(folder) / "ct2", threads)
        results = measure(programs, lines, options.single, options.repeats, options.mode)
    settings = {
        "lines": len(lines),
        "source_words": sum(len(line.split()) for line in lines),
        "device": options.device,
        "batch_tokens": options.batch_tokens,
        "threads": threads,
        "workers": options.workers,
        "cores": os.cpu_count(),
        "repeats": options.repeats,
    }
    record("decode", settings, results, options.save)


def measure(
    programs: Mapping[str, Program], lines: Sequence[str], single: int, repeats: int, modes: Sequence[str]
) -> dict[str, Any]:
    """For each mode and program the median of the repeats, programs in turn."""
    results: dict[str, Any] = {}
    for mode in modes:
        beam, alone = MODES[mode]
        some = lines[:single] if alone else lines
        took: dict[str, list[Took]] = defaultdict(list)
        for program in programs.values():  # the first call is never the fastest
            program(some[:64], beam, alone)
        for _ in range(repeats):
            for name, program in programs.items():
                took[name].append(program(some, beam, alone))
        results[mode] = {name: summary(len(some), runs) for name, runs in took.items()}
    return results


def summary(lines: int, runs: Sequence[Took]) -> dict[str, Any]:
    seconds = statistics.median(run.seconds for run in runs)
    return {
        "sentences_per_second": round(lines / seconds, 1),
        "target_tokens_per_second": round(runs[-1].tokens / seconds),
        "milliseconds_a_sentence": round(1000 * seconds / lines, 2),
        "peak_mib": runs[-1].peak_mib,
        "lines": lines,
    }


if __name__ == "__main__":
    main()
