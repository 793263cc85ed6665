"""The gradient of many processes: by the toolkit's hooks and by torch's DistributedDataParallel, in turn.

Each process computes batches of its own, forwards and backwards, and all add up their gradients, once in each way for
every batch. The ratio is that of medians of DistributedDataParallel's time to the hooks'; beside it stands how far the
two gradients lie apart.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.distributed as dist
from record import record
from torch import nn
from torch.multiprocessing.spawn import spawn
from torch.nn.parallel import DistributedDataParallel
from train_step import PAD, invented, places

from nmt.batches.batch import Batch
from nmt.model.config import PRESETS, TransformerConfig
from nmt.schema import parse_count
from nmt.train.gradients import Gradients, Sums
from nmt.train.loss import Objective
from nmt.train.ranks import share

SMOOTHING = 0.1


def main() -> None:
    options = parse()
    with tempfile.TemporaryDirectory() as folder:
        arguments = (options, Path(folder))
        spawn(measure, arguments, nprocs=options.processes)  # type: ignore[no-untyped-call]
        results = json.loads((Path(folder) / "results").read_text())
    settings = {name: value for name, value in vars(options).items() if name != "save"}
    record("processes", settings, results, options.save)
    print(f"{results['ratio']} of the hooks' time", file=sys.stderr)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--preset", choices=sorted(PRESETS), default="small")
    parser.add_argument("--vocabulary", type=int, default=8_000, help="pieces (default 8000)")
    parser.add_argument("--batch-tokens", type=parse_count, default=2048, help="of a process (default 2048)")
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="of a process (default 1)")
    parser.add_argument("--steps", type=int, default=20, help="batches of a process that are measured (default 20)")
    parser.add_argument("--warmup", type=int, default=5, help="batches before them (default 5)")
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results")
    return parser.parse_args()


def measure(rank: int, options: argparse.Namespace, folder: Path) -> None:
    """One of the processes; the first writes what was found."""
    torch.set_num_threads(options.threads)
    device = torch.device(options.device, rank) if options.device == "cuda" else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    store = dist.FileStore(str(folder / "store"), options.processes)
    dist.init_process_group(
        "nccl" if device.type == "cuda" else "gloo", store=store, rank=rank, world_size=options.processes
    )
    options.accumulate = options.processes
    data, _ = invented(options, options.batch_tokens)
    ours, theirs = Hooks(options, device), Torchs(options, device)
    seconds: dict[Way, list[float]] = {ours: [], theirs: []}
    apart = []
    for (updates, place), _ in zip(places(data), range(options.warmup + options.steps), strict=False):
        (rows,) = share(updates[place], rank, options.processes)[:1]
        batch = data.load(rows).to(device)
        for way in (ours, theirs):
            torch.manual_seed(rank)
            dist.barrier()
            start = time.perf_counter()
            way.gradient(batch)
            if device.type == "cuda":
                torch.cuda.synchronize()
            seconds[way].append(time.perf_counter() - start)
        apart.append(ours.apart(theirs))
    if rank == 0:
        found = {way: statistics.median(all_[options.warmup :]) for way, all_ in seconds.items()}
        results = {
            "hooks_s": round(found[ours], 4),
            "distributed_data_parallel_s": round(found[theirs], 4),
            "ratio": round(found[theirs] / found[ours], 3),
            "largest_relative_difference": max(apart),
        }
        (folder / "results").write_text(json.dumps(results))
    dist.destroy_process_group()


class Way:
    """A model, and one way to the gradient of all processes."""

    def __init__(self, options: argparse.Namespace, device: torch.device) -> None:
        self.half = options.precision == "bfloat16"
        self.model = TransformerConfig.model_validate({"preset": options.preset}).build(
            options.vocabulary, options.vocabulary, PAD
        )
        self.model.initialize(torch.Generator().manual_seed(1))
        self.model.to(device)
        self.device = device
        self.objective: nn.Module = Objective(self.model)

    def gradient(self, batch: Batch) -> None:
        """Leave the gradient of all processes' losses in the parameters."""
        raise NotImplementedError

    def backward(self, batch: Batch) -> None:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.half):
            loss, _ = self.objective(batch, SMOOTHING, PAD)
        (loss / batch.tokens).backward()

    def apart(self, other: Way) -> float:
        """The norm of the gradients' difference, over that of the other's."""
        mine, its = self.flat(), other.flat()
        return float((mine - its).norm() / its.norm())

    def flat(self) -> torch.Tensor:
        """All gradients in one row."""
        return torch.cat([p.grad.flatten() for p in self.model.parameters() if p.grad is not None])


class Hooks(Way):
    """The toolkit's."""

    def __init__(self, options: argparse.Namespace, device: torch.device) -> None:
        super().__init__(options, device)
        self.sums: Gradients = Sums(list(self.model.parameters()), nullcontext)

    def gradient(self, batch: Batch) -> None:
        self.sums.begin()
        with self.sums.passing(last=True):
            self.backward(batch)
        self.sums.finish()


class Torchs(Way):
    """DistributedDataParallel's, which is the mean."""

    def __init__(self, options: argparse.Namespace, device: torch.device) -> None:
        super().__init__(options, device)
        self.objective = DistributedDataParallel(self.objective, gradient_as_bucket_view=True)
        self.mean_of = options.processes

    def gradient(self, batch: Batch) -> None:
        self.model.zero_grad(set_to_none=False)
        self.backward(batch)

    def flat(self) -> torch.Tensor:
        return super().flat() * self.mean_of


if __name__ == "__main__":
    main()
