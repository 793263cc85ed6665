"""Speed and memory of real training updates: `nmt.train.fit.learn` on a run folder's pairs, or on invented ones.

With `--beside NAME` another toolkit takes every batch too, in turn with ours, and the ratio is that of medians.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from peers import PEERS
from record import record

from nmt.batches.batch import Batch
from nmt.batches.buckets import BatchOrder
from nmt.checkpoint.device import arithmetic, choose
from nmt.model.config import PRESETS, TransformerConfig
from nmt.schema import parse_count
from nmt.train.config import AdamConfig
from nmt.train.data import Pairs
from nmt.train.fit import learn
from nmt.train.rules import Rules

PAD, UNK, BOS, EOS = range(4)


def main() -> None:
    options = parse()
    if options.threads:
        torch.set_num_threads(options.threads)
    device = choose(options.device)
    precision = arithmetic(options.precision, device)
    torch.manual_seed(1)
    data, vocabulary = real(options) if options.run else invented(options)
    config = TransformerConfig.model_validate(
        {"preset": options.preset} | ({} if options.dropout is None else {"dropout": options.dropout})
    )
    model = config.build(vocabulary, vocabulary, PAD)
    model.initialize(torch.Generator().manual_seed(1))
    model.to(device)
    optimizer = AdamConfig().build(model)
    rules = Rules(clip_norm=1.0, precision=precision)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)

    peer = PEERS[options.beside](config, vocabulary, PAD, BOS, EOS) if options.beside else None
    tokens, seconds, flops, peer_seconds = [], [], [], []
    updates = itertools.chain.from_iterable(data.updates(epoch) for epoch in itertools.count())
    for update in itertools.islice(updates, options.warmup + options.steps):
        start = time.perf_counter()
        batches = [data.load(rows) for rows in update]
        outcome = learn(model, optimizer, batches, rate=1e-4, rules=rules, pad=data.pad)  # waits for the device
        seconds.append(time.perf_counter() - start)
        tokens.append(outcome.tokens)
        flops.append(sum(training_flops(config, vocabulary, batch) for batch in batches))
        if peer:
            start = time.perf_counter()
            peer([data.load(rows) for rows in update])
            peer_seconds.append(time.perf_counter() - start)

    first = options.warmup
    rate = sum(tokens[first:]) / sum(seconds[first:])
    reached = sum(flops[first:]) / sum(seconds[first:])
    peak = options.peak_tflops * 1e12 if options.peak_tflops else matrix_product_speed(device, precision)
    results = {
        "target_tokens_per_second": round(rate, 1),
        "median_update_s": round(statistics.median(seconds[first:]), 4),
        "target_tokens_per_update": round(statistics.mean(tokens[first:]), 1),
        "peak_memory_mb": None if peer else round(peak_memory(device) / 1e6),
        "tflops": round(reached / 1e12, 4),
        "peak_tflops": round(peak / 1e12, 4),
        "utilisation": round(reached / peak, 4),
    }
    if peer:
        pairs = [theirs / ours for theirs, ours in zip(peer_seconds[first:], seconds[first:], strict=True)]
        results |= {
            "peer_target_tokens_per_second": round(sum(tokens[first:]) / sum(peer_seconds[first:]), 1),
            "ratio": round(statistics.median(pairs), 3),
        }
    settings = {name: v.name if isinstance(v, Path) else v for name, v in vars(options).items() if name != "save"}
    settings |= {
        "vocabulary": vocabulary,
        "device": str(device),
        "precision": precision,
        "threads": torch.get_num_threads(),
    }
    record("train_step", settings, results, options.save)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, help="a run folder with shards; otherwise invented lengths")
    parser.add_argument("--preset", default="base-2017", choices=sorted(PRESETS))
    parser.add_argument("--dropout", type=float, help="instead of the preset's")
    parser.add_argument("--beside", choices=sorted(PEERS), help="a toolkit that is installed here, in float32")
    parser.add_argument("--batch-tokens", type=parse_count, default=4096)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--vocabulary", type=int, default=32_000, help="pieces, for invented pairs (default 32000)")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="float32", choices=["auto", "float32", "bfloat16"])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--steps", type=int, default=50, help="updates that are measured (default 50)")
    parser.add_argument("--warmup", type=int, default=10, help="updates before them (default 10)")
    parser.add_argument("--peak-tflops", type=float, help="what the device can do; otherwise a matrix product is timed")
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results")
    return parser.parse_args()


def real(options: argparse.Namespace) -> tuple[Pairs, int]:
    """The training pairs of a run folder."""
    from nmt.recipe import read
    from nmt.stages.bpe import vocabulary_files
    from nmt.stages.stage import RunFolder
    from nmt.stages.train import training_pairs
    from nmt.subwords.vocabulary import Vocabulary

    sizes = [f"train.batch_tokens={options.batch_tokens}", f"train.accumulate={options.accumulate}"]
    recipe, run = read(options.run / "recipe.toml", sizes), RunFolder(options.run)
    files = vocabulary_files(run, recipe.bpe.shared)
    target = Vocabulary.load(files["target"])
    return training_pairs(recipe, run, target)[0], max(len(target), len(Vocabulary.load(files["source"])))


def invented(options: argparse.Namespace, pairs: int = 50_000) -> tuple[Pairs, int]:
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
        batch_tokens=options.batch_tokens,
        accumulate=options.accumulate,
        max_source_tokens=128,
        max_target_tokens=128,
        seed=1,
    )
    return Pairs(sides[0], sides[1], order, bos=BOS, eos=EOS, pad=PAD), options.vocabulary


def training_flops(config: TransformerConfig, vocabulary: int, batch: Batch) -> float:
    """What an update of `batch` takes at least: two operations a weight and token, forward once, backward twice.

    Padding does not count, nor do softmax, norms, dropout and the optimizer.
    """
    source = batch.keep_BS.sum(1).double()
    target = (batch.out_BT != PAD).sum(1).double()
    width, inner = config.width, config.feedforward
    square, ahead = width * width, 2 * width * inner
    encoder = config.encoder_layers * (source * (4 * square + ahead) + 2 * source**2 * width)
    cross = 2 * (source + target) * square + 2 * source * target * width
    own = target * (4 * square + ahead) + target**2 * width  # nothing is read from the future: half the square
    decoder = config.decoder_layers * (own + cross) + target * vocabulary * width
    return 6 * float((encoder + decoder).sum())


def matrix_product_speed(device: torch.device, precision: str) -> float:
    """Operations a second of a large matrix product, the best of several: what can be reached here at most."""
    size = 8192 if device.type == "cuda" else 2048
    x = torch.randn(size, size, device=device, dtype=torch.bfloat16 if precision == "bfloat16" else torch.float32)
    best = float("inf")
    for _ in range(6):
        start = time.perf_counter()
        (x @ x)[0, 0].item()
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best


def peak_memory(device: torch.device) -> float:
    """Bytes: of tensors on the GPU, or of the whole process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
