"""Speed, memory and utilisation of real training updates, on the pairs of a run folder or on invented ones.

Several presets, batch sizes and values of --compile may be given: each is measured by itself. On a GPU, without these
options, small, base-2017 and big-2017 are measured in bfloat16, compiled and not, with batches of several sizes. What
does not fit into memory, or fails, is told, and the next is measured; `--save` writes after each, so that nothing is
lost. With `--beside NAME` another toolkit takes every batch too, in turn with ours, and the ratio is that of medians.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import statistics
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from peers import PEERS
from record import described, keep
from utilisation import peak

from nmt.batches.ahead import Update
from nmt.batches.buckets import BatchOrder
from nmt.checkpoint.device import arithmetic, choose
from nmt.model.config import PRESETS, TransformerConfig
from nmt.schema import parse_count
from nmt.train.compiled import compile_layers
from nmt.train.config import AdamConfig
from nmt.train.data import Pairs
from nmt.train.flops import FORMULA, batch_work
from nmt.train.kernels import attention_kernels
from nmt.train.loader import Loader
from nmt.train.room import Room, ran_out
from nmt.train.rules import Rules
from nmt.train.update import learn

PAD, UNK, BOS, EOS = range(4)


def main() -> None:
    options = parse()
    if options.threads:
        torch.set_num_threads(options.threads)
    device = choose(options.device)
    fill_in(options, device)
    reachable, source = peak(device, options.precision, options.peak_tflops)
    settings = {name: v.name if isinstance(v, Path) else v for name, v in vars(options).items() if name != "save"}
    settings |= {"device": str(device), "threads": torch.get_num_threads(), "peak_from": source, "flops": FORMULA}

    begun, results = datetime.now(UTC), list[dict[str, Any]]()
    with attention_kernels(device):
        for result in measured(options, device, reachable):
            results.append(result)
            print(told(result), file=sys.stderr, flush=True)
            found = results[0] if len(results) == 1 else {"runs": results}
            data = described("train_step", settings, found, begun)
            path = keep(data) if options.save else None
    print(json.dumps(data))
    if path:
        print(f"wrote {path}", file=sys.stderr)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, help="a run folder with shards; otherwise invented lengths")
    parser.add_argument("--preset", nargs="+", choices=sorted(PRESETS))
    parser.add_argument("--dropout", type=float, help="instead of the presets'")
    parser.add_argument("--beside", choices=sorted(PEERS), help="a toolkit that is installed here, in float32")
    parser.add_argument("--batch-tokens", nargs="+", type=parse_count)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument(
        "--compile", nargs="+", choices=["off", "on"], help="train.compile (default off; on a GPU both)"
    )
    parser.add_argument("--vocabulary", type=int, default=32_000, help="pieces, for invented pairs (default 32000)")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", choices=["auto", "float32", "bfloat16"])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--steps", type=int, default=50, help="updates that are measured (default 50)")
    parser.add_argument("--warmup", type=int, default=10, help="updates before them (default 10)")
    parser.add_argument("--minutes", type=float, help="begin no measurement after so many")
    parser.add_argument("--peak-tflops", type=float, help="what the device can do; otherwise by its name or measured")
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results")
    return parser.parse_args()


def fill_in(options: argparse.Namespace, device: torch.device) -> None:
    """What is measured where nothing is said about it."""
    on_gpu = device.type == "cuda"
    options.preset = options.preset or (["small", "base-2017", "big-2017"] if on_gpu else ["base-2017"])
    options.batch_tokens = sorted(options.batch_tokens or ([8192, 25_000, 50_000, 100_000] if on_gpu else [4096]))
    options.compile = options.compile or (["off", "on"] if on_gpu else ["off"])
    options.precision = arithmetic(options.precision or ("bfloat16" if on_gpu else "float32"), device)


def measured(options: argparse.Namespace, device: torch.device, reachable: float) -> Iterator[dict[str, Any]]:
    """What there is to tell of each combination, from the smallest batch of a model to the largest that fits."""
    last = time.monotonic() + 60 * (options.minutes or float("inf"))
    for preset, compiled in itertools.product(options.preset, options.compile):
        torch.compiler.reset()
        trained, full = None, False
        for size in options.batch_tokens:
            case = {"preset": preset, "compile": compiled == "on", "batch_tokens": size}
            if full or time.monotonic() > last:
                yield case | {"left_out": "a smaller batch does not fit" if full else f"{options.minutes} minutes over"}
                continue
            try:
                data, vocabulary = real(options, size) if options.run else invented(options, size)
                trained = trained or Trained(options, preset, vocabulary, device, compiled == "on")
                yield case | trained.measure(options, data, reachable)
            except Exception as error:  # whatever it is, the others can still be measured
                full = full or isinstance(error, MemoryError) or ran_out(error)
                first = next(iter(str(error).splitlines()), "")
                yield case | {"error": "does not fit into memory" if full else f"{type(error).__name__}: {first}"}
            if device.type == "cuda":
                torch.cuda.empty_cache()


class Trained:
    """A model that learns, and how fast it does."""

    def __init__(
        self, options: argparse.Namespace, preset: str, vocabulary: int, device: torch.device, compiled: bool
    ) -> None:
        dropout = {} if options.dropout is None else {"dropout": options.dropout}
        torch.manual_seed(1)
        self.config = TransformerConfig.model_validate({"preset": preset} | dropout)
        self.vocabulary, self.device = vocabulary, device
        self.model = self.config.build(vocabulary, vocabulary, PAD)
        self.model.initialize(torch.Generator().manual_seed(1))
        self.model.to(device)
        if compiled:
            compile_layers(self.model)
        self.optimizer = AdamConfig().build(self.model)
        self.rules = Rules(clip_norm=1.0, precision=options.precision)
        self.peer = PEERS[options.beside](self.config, vocabulary, PAD, BOS, EOS) if options.beside else None

    def measure(self, options: argparse.Namespace, data: Pairs, reachable: float) -> dict[str, Any]:
        """Tokens a second and the rest, of updates on `data`. Raises MemoryError where batches don't fit."""
        on_gpu = self.device.type == "cuda"
        if on_gpu:
            torch.cuda.reset_peak_memory_stats(self.device)
        tokens, seconds, flops, peer_seconds, room = [], [], [], [], Room()
        loader = Loader(data.load, list, ahead=on_gpu, pinned=on_gpu)
        for updates, place in itertools.islice(places(data), options.warmup + options.steps):
            start = time.perf_counter()
            batches = loader.take(updates, place)
            outcome = learn(
                self.model, self.optimizer, batches, rate=1e-4, rules=self.rules, pad=data.pad, room=room
            )  # waits for the device, but for the optimizer's step, which the next one waits for
            seconds.append(time.perf_counter() - start)
            if room.limit is not None:
                raise MemoryError
            tokens.append(outcome.tokens)
            flops.append(sum(batch_work(self.config, self.vocabulary, batch, data.pad).all for batch in batches))
            if self.peer:
                start = time.perf_counter()
                self.peer([data.load(rows) for rows in updates[place]])
                peer_seconds.append(time.perf_counter() - start)

        first = options.warmup
        spent = sum(seconds[first:])
        reached = sum(flops[first:]) / spent
        results = {
            "parameters": sum(parameter.numel() for parameter in self.model.parameters()),
            "vocabulary": self.vocabulary,
            "target_tokens_per_second": round(sum(tokens[first:]) / spent, 1),
            "median_update_s": round(statistics.median(seconds[first:]), 4),
            "first_update_s": round(seconds[0], 2),
            "target_tokens_per_update": round(statistics.mean(tokens[first:]), 1),
            "peak_memory_mb": None if self.peer else round(peak_memory(self.device) / 1e6),
            "tflops": round(reached / 1e12, 4),
            "peak_tflops": round(reachable / 1e12, 4),
            "utilisation": round(reached / reachable, 4),
        }
        if self.peer:
            pairs = [theirs / ours for theirs, ours in zip(peer_seconds[first:], seconds[first:], strict=True)]
            results |= {
                "peer_target_tokens_per_second": round(sum(tokens[first:]) / sum(peer_seconds[first:]), 1),
                "ratio": round(statistics.median(pairs), 3),
            }
        return results


def places(data: Pairs) -> Iterator[tuple[list[Update], int]]:
    """All updates of all epochs: those of a group, and which of them."""
    for epoch, group in ((e, g) for e in itertools.count() for g in range(data.groups)):
        updates = data.updates(epoch, group)
        yield from ((updates, place) for place in range(len(updates)))


def told(result: dict[str, Any]) -> str:
    """A line for people."""
    case = f"{result['preset']}, {result['batch_tokens']:,} tokens{', compiled' if result['compile'] else ''}: "
    if "utilisation" not in result:
        return case + (result.get("error") or result["left_out"])
    memory = result["peak_memory_mb"]
    return (
        f"{case}{result['target_tokens_per_second']:,.0f} target tokens/s, {1000 * result['median_update_s']:.0f} ms "
        f"an update, {'' if memory is None else f'{memory:,} MB, '}{result['tflops']:.2f} TFLOPS, "
        f"{result['utilisation']:.1%} of {result['peak_tflops']:.2f}"
    )


def real(options: argparse.Namespace, batch_tokens: int) -> tuple[Pairs, int]:
    """The training pairs of a run folder."""
    from nmt.recipe import read
    from nmt.stages.bpe import vocabulary_files
    from nmt.stages.stage import RunFolder
    from nmt.stages.train import training_pairs
    from nmt.subwords.vocabulary import Vocabulary

    sizes = [f"train.batch_tokens={batch_tokens}", f"train.accumulate={options.accumulate}"]
    recipe, run = read(options.run / "recipe.toml", sizes), RunFolder(options.run)
    files = vocabulary_files(run, recipe.bpe.shared)
    target = Vocabulary.load(files["target"])
    return training_pairs(recipe, run, target)[0], max(len(target), len(Vocabulary.load(files["source"])))


def invented(options: argparse.Namespace, batch_tokens: int, pairs: int = 50_000) -> tuple[Pairs, int]:
    """Pairs of random ids whose lengths are spread as those of news text are: median 23, mean 27."""
    generator = np.random.default_rng(1)
    source = np.clip(generator.lognormal(3.13, 0.6, pairs), 1, 127).astype(np.int32)
    target = np.clip(source * generator.normal(1.05, 0.15, pairs), 1, 127).astype(np.int32)
    sides = [
        np.split(generator.integers(EOS + 1, options.vocabulary, lengths.sum()), lengths.cumsum()[:-1])
        for lengths in (source, target)
    ]
    order = BatchOrder(
        source,
        target,
        batch_tokens=batch_tokens,
        accumulate=options.accumulate,
        max_source_tokens=128,
        max_target_tokens=128,
        seed=1,
    )
    return Pairs(sides[0], sides[1], order, bos=BOS, eos=EOS, pad=PAD), options.vocabulary


def peak_memory(device: torch.device) -> float:
    """Bytes: of tensors on the GPU, or of the whole process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
