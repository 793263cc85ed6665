"""How many sentences a second a model folder translates: beam 4, greedy, and one sentence at a time."""

from __future__ import annotations

import argparse
import statistics
import time
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from record import record

import nmt
from nmt.corpus.lines import read_lines
from nmt.schema import parse_count
from nmt.search.translate import Translator

MODES: dict[str, dict[str, Any]] = {
    "beam 4": {"beam": 4},
    "greedy": {"beam": 1},
    "one at a time": {"beam": 4, "buffer_lines": 1},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="a run folder, a checkpoint or a model folder")
    parser.add_argument("input", type=Path, help="raw source text")
    parser.add_argument("--lines", type=int, default=1000, help="at most so many lines (default 1000)")
    parser.add_argument("--single", type=int, default=100, help="lines translated one at a time (default 100)")
    parser.add_argument("--repeats", type=int, default=3, help="the median of so many is told (default 3)")
    parser.add_argument("--batch-tokens", type=parse_count)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", choices=["float32", "bfloat16"])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results")
    options = parser.parse_args()
    lines = list(islice(read_lines(options.input), options.lines))
    translator = nmt.load(options.model, options.device, options.threads)
    common = {"precision": options.precision, "batch_tokens": options.batch_tokens}
    translator.translate(lines[:20], **common)  # the first call is never the fastest
    results = {
        name: measure(translator, lines[: options.single] if "one" in name else lines, options.repeats, mode | common)
        for name, mode in MODES.items()
    }
    settings = {
        "lines": len(lines),
        "source_words": sum(len(line.split()) for line in lines),
        "parameters": sum(parameter.numel() for parameter in translator.model.parameters()),
        "device": str(translator.device),
        "precision": options.precision or translator.settings.precision,
        "batch_tokens": options.batch_tokens or translator.settings.batch_tokens,
        "threads": torch.get_num_threads(),
        "repeats": options.repeats,
    }
    record("decode", settings, results, options.save)


def measure(translator: Translator, lines: list[str], repeats: int, settings: dict[str, Any]) -> dict[str, Any]:
    times, tokens = [], 0
    for _ in range(repeats):
        start = time.perf_counter()
        found = list(translator.stream(lines, **settings))
        times.append(time.perf_counter() - start)
        tokens = sum(len(translation.best.token_log_probabilities) for translation in found)
    seconds = statistics.median(times)
    return {
        "sentences_per_second": round(len(lines) / seconds, 2),
        "target_tokens_per_second": round(tokens / seconds, 1),
        "seconds": round(seconds, 3),
        "lines": len(lines),
    }


if __name__ == "__main__":
    main()
