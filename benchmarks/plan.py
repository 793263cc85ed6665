"""How long planning batches of very many pairs takes, how much memory, and whether training would wait for it.

The pairs are shards with generated lengths, as subwords of news have them, whose ids are holes in the files. A process
of its own opens them as training does and goes through some groups of an epoch; each update takes `--step` seconds.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter
from record import record

from nmt.batches import shards
from nmt.schema import Count

VOCABULARY = 32_000
PIECE = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", nargs="+", default=["1M", "10M", "100M"], help="numbers of pairs (1M 10M 100M)")
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--step", type=float, default=0.001, help="seconds that an update takes (default 0.001)")
    parser.add_argument("--groups", type=int, default=4, help="groups to go through (default 4)")
    parser.add_argument("--load", action="store_true", help="load every batch from its shards too")
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder:
        print(json.dumps(measured(options)))
        return
    results = {}
    for text in options.pairs:
        pairs = TypeAdapter(Count).validate_python(text)
        with tempfile.TemporaryDirectory() as folder:
            for number, side in enumerate(("source", "target")):
                write(Path(folder) / side, pairs, number)
            command = [sys.executable, __file__, "--folder", folder, *sys.argv[1:]]
            results[f"{pairs:,}"] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        print(f"{pairs:,} pairs: {results[f'{pairs:,}']}", file=sys.stderr)
    settings = {name: getattr(options, name) for name in ("batch_tokens", "step", "groups", "load")}
    record("plan", settings, results, options.save)


def write(path: Path, pairs: int, side: int) -> None:
    """A shard of sentences of about 25 pieces, log-normal; the second side's differ from the first's by a fifth."""
    with path.open("wb") as stream, tempfile.TemporaryFile() as kept:
        total = 0
        for lengths in generated(pairs, side):
            total += int(lengths.sum(dtype=np.int64))
            kept.write(lengths.tobytes())
        stream.write(shards._header(2, pairs, total, VOCABULARY, bytes(32)))
        stream.seek(128 + 2 * total + -2 * total % 4)  # the ids: a hole
        kept.seek(0)
        while block := kept.read(PIECE):
            stream.write(block)


def generated(pairs: int, side: int) -> Iterator[np.ndarray]:
    for start in range(0, pairs, PIECE):
        generator, count = np.random.default_rng(start), min(PIECE, pairs - start)
        lengths = np.exp(generator.normal(np.log(22), 0.55, count))
        if side:
            lengths *= np.exp(generator.normal(0, 0.2, count))
        yield np.clip(lengths.round(), 1, 400).astype("<i4")


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """What training would see of the shards in a folder."""
    from nmt.batches.buckets import BatchOrder
    from nmt.batches.shards import Shard
    from nmt.train.data import Pairs

    before, start = memory(), time.perf_counter()
    peak = Peak()
    source, target = (Shard.open(options.folder / side) for side in ("source", "target"))
    opened = time.perf_counter() - start
    limits = {"accumulate": 1, "max_source_tokens": 256, "max_target_tokens": 256, "seed": 1}
    order = BatchOrder(source.lengths, target.lengths, batch_tokens=options.batch_tokens, **limits)
    data = Timed(Pairs(source, target, order, bos=2, eos=3, pad=0))
    data.pairs.updates(0, 0)[0]
    first = time.perf_counter() - start
    waits, longest, counts, spent = [], 0.0, [], []
    for group in range(min(options.groups, order.groups)):
        begin = time.perf_counter()
        updates = data.pairs.updates(0, group)
        waits.append(time.perf_counter() - begin)
        counts.append(len(updates))
        began = time.perf_counter()
        for update in updates:
            begin = time.perf_counter()
            if options.load:
                for rows in update:
                    data.pairs.load(rows)
            time.sleep(options.step)
            longest = max(longest, time.perf_counter() - begin)
        spent.append(time.perf_counter() - began)
    seconds = max(data.seconds[: len(counts) + 1])
    peak.stop()
    return {
        "pairs": len(source),
        "groups": order.groups,
        "updates_a_group": round(sum(counts) / len(counts)),
        "open_s": round(opened, 2),
        "first_update_s": round(first, 2),
        "plan_a_group_s": [round(taken, 2) for taken in data.seconds],
        "longest_wait_for_a_later_group_s": round(max(waits[1:], default=0.0), 4),
        "longest_step_s": round(longest, 4),
        "no_wait_from_steps_of_s": round(seconds / min(counts), 6),
        "train_a_group_s": [round(seconds, 1) for seconds in spent],
        "would_wait": seconds > min(spent),
        "before_MB": round(before["total"]),
        "peak_MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "peak_own_MB": round(peak.own),
    }


class Timed:
    """Pairs whose order tells how long it planned."""

    def __init__(self, pairs: Any) -> None:
        self.pairs, self.seconds = pairs, []
        group = pairs.order.group

        def timed(epoch: int, number: int) -> Any:
            start = time.perf_counter()
            made = group(epoch, number)
            self.seconds.append(time.perf_counter() - start)
            return made

        pairs.order.group = timed


class Peak(threading.Thread):
    """The most memory of the process's own, files that are mapped left out, looked at fifty times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.own, self._over = 0.0, threading.Event()
        self.start()

    def run(self) -> None:
        while not self._over.wait(0.02):
            self.own = max(self.own, memory()["own"])

    def stop(self) -> None:
        self._over.set()
        self.join()


def memory() -> dict[str, float]:
    """Megabytes that this process has now: all of them, and those that are no mapped file."""
    names = {"VmRSS": "total", "RssAnon": "own"}
    lines = (line.partition(":") for line in Path("/proc/self/status").read_text().splitlines())
    return {names[name]: int(value.split()[0]) / 1024 for name, _, value in lines if name in names}


if __name__ == "__main__":
    main()
