"""What a recipe will cost, before it is run: parameters, memory, arithmetic, time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from typing import TYPE_CHECKING

from nmt.batches.batch import Batch
from nmt.checkpoint.device import arithmetic, choose
from nmt.errors import NmtError, TrainingError
from nmt.recipe import Recipe
from nmt.stages.bpe import vocabulary_files
from nmt.stages.costs import Estimate, Memory, Sizes, Time, Updates
from nmt.stages.lengths import Drawn, Lengths, drawn, lengths_of
from nmt.stages.manifest import misfits
from nmt.stages.parent import parent_of
from nmt.stages.settle import kept
from nmt.stages.stage import STAGES, RunFolder
from nmt.train.crowd import told_of_share, usable
from nmt.train.flops import PUBLISHED, Work, batch_work, training_work
from nmt.train.footprint import Parameters, activation_bytes, moments, parameters_of
from nmt.train.gpus import UTILISATION, Gpu, of_device

if TYPE_CHECKING:
    import torch

    from nmt.model.seq2seq import Seq2Seq
    from nmt.train.pace import Pace

FASTEST = 0.02  # seconds of a batch, below which a GPU rather waits for the program than the program for the GPU
USUAL_BATCH = 4096  # tokens, where a run has yet to find out what auto means
COMPUTE = "--gpu NAME computes instead of measuring: try --gpu h100, or a smaller model"


def estimate(recipe: Recipe, run: RunFolder, gpu: Gpu | None = None, gpus: int = 1) -> Estimate:
    """What `recipe` costs on so many of a kind of GPU, computed; or on this machine, where updates are made.

    Raises DataError for text that cannot be read, ModelError for a damaged run, NmtError where a device or a model to
    start from isn't there, TrainingError where no pair fits into a batch.
    """
    strange = list(_strange(recipe, run))
    made = None if strange or not run.bpe.is_dir() else run
    sizes, lengths, tokens = _sizes(recipe, made), lengths_of(recipe, made), _batch_tokens(recipe, run)
    plan = drawn(recipe, lengths, tokens, (sizes.source, sizes.target))
    model = _shape(recipe, sizes)
    parameters = parameters_of(model)
    each = training_work(recipe.model, sizes.target, plan.source, plan.target)
    work = _passed(recipe, each).times(1 / plan.updates)
    if gpu:
        time, pace = _computed(recipe, gpu, gpus, work), None
    else:
        least = 4 * (parameters.all + parameters.trained + moments(model, recipe.train.optimizer))
        time, pace = _measured(recipe, plan, sizes, work, least)
    memory = _memory(recipe, parameters, model, sizes, plan, time)
    if pace:
        memory = replace(memory, peak=pace.peak_bytes, peak_batch_tokens=pace.batch_tokens)
    updates = _updates(recipe, plan, lengths.told_by, tokens, time.seconds_an_update)
    if updates.in_all is not None:
        time = replace(time, hours=updates.in_all * time.seconds_an_update / 3600)
    published = PUBLISHED.get(recipe.model.preset or "")
    cautions = (*strange, *_cautions(recipe, lengths, tokens, time, pace))
    return Estimate(recipe.name, sizes, parameters, updates, work, memory, time, published, cautions)


def _strange(recipe: Recipe, run: RunFolder) -> Iterator[str]:
    """What keeps the run's vocabulary and shards, where there are some, from being those that training will have."""
    if run.bpe.is_dir():
        found = {name: misfits(STAGES[name], recipe, run) for name in ("preprocess", "bpe")}
        if told := [f"{name}: {reason}" for name, reasons in found.items() for reason in reasons]:
            yield f"{run.path}: its vocabulary and shards are to be made anew, and left out here: {'; '.join(told)}"


def _cautions(recipe: Recipe, lengths: Lengths, tokens: int, time: Time, pace: Pace | None) -> Iterator[str]:
    """In what the estimate may be far off."""
    train = recipe.train
    if lengths.told_by == "news":
        yield "the training text is not there: sentences are taken to be as long as those of news"
    if train.batch_tokens == "auto" and tokens == USUAL_BATCH:
        yield f"train.batch_tokens = auto is found out when training begins; {tokens:,} is taken here"
    if train.freeze:
        yield "train.freeze: FLOPs are counted as if all weights learned"
    for name in ("compile", "guided_alignment"):
        if getattr(train, name) and time.measured:
            yield f"train.{name}: measured without it"
    if train.patience:
        yield f"train.patience = {train.patience} may end training earlier"
    if train.precision == "bfloat16" and time.precision == "float32":
        yield f"{time.on} has no instructions for bfloat16: float32 is counted"
    if not time.measured and time.seconds_an_update < FASTEST * recipe.train.accumulate / time.gpus:
        yield "such small batches leave a GPU idle for most of the time: it will take several times as long"
    if pace and time.threads and (told := told_of_share(pace.seconds, pace.processor_seconds, usable(time.threads))):
        yield f"while it was measured, {told}"


def _sizes(recipe: Recipe, run: RunFolder | None) -> Sizes:
    """Pieces on each side, from what is there."""
    from nmt.subwords.vocabulary import Vocabulary

    if run:
        files, told_by = vocabulary_files(run, recipe.bpe.shared), "run"
    else:
        parent = parent_of(recipe)
        if parent is None:
            return Sizes(recipe.bpe.size, recipe.bpe.size, "bpe.size")
        files, told_by = parent.vocabularies, "start_from"
    return Sizes(len(Vocabulary.load(files["source"])), len(Vocabulary.load(files["target"])), told_by)


def _batch_tokens(recipe: Recipe, run: RunFolder) -> int:
    if recipe.train.batch_tokens != "auto":
        return recipe.train.batch_tokens
    return kept(run) or USUAL_BATCH


def _passes(recipe: Recipe) -> int:
    """How often a pair goes through the model: twice with R-Drop."""
    return 1 if recipe.train.rdrop_alpha is None else 2


def _passed(recipe: Recipe, work: Work) -> Work:
    """The work of each pass together, without the layers that are left out."""
    return work.times(_passes(recipe), layers=1 - recipe.model.layer_drop)


def _shape(recipe: Recipe, sizes: Sizes) -> Seq2Seq:
    """The model without any numbers, frozen as the recipe says."""
    import torch

    from nmt.train.freeze import freeze

    with torch.device("meta"):
        model = recipe.model.build(sizes.source, sizes.target, 0, blank=True)
    if recipe.train.freeze:
        freeze(model, recipe.train.freeze)
    return model


def _memory(
    recipe: Recipe,
    parameters: Parameters,
    model: Seq2Seq,
    sizes: Sizes,
    plan: Drawn,
    time: Time,
) -> Memory:
    """What each process keeps; weights, gradients, moments and their average are float32."""
    tokens = math.ceil(plan.largest * min(1.0, plan.batches / time.gpus))  # more GPUs than batches share their rows
    shared = time.gpus if recipe.train.sharding == "full" else 1
    average = 0 if recipe.train.ema_decay is None else parameters.trained
    kept = moments(model, recipe.train.optimizer)
    on_gpu = time.on != "cpu"
    activations = activation_bytes(recipe.model, parameters.all, sizes.target, tokens, time.precision, on_gpu)
    return Memory(
        weights=4 * parameters.all // shared,
        gradients=4 * parameters.trained // shared,
        moments=4 * kept // shared,
        average=4 * average // shared,
        activations=activations * _passes(recipe),
    )


def _updates(recipe: Recipe, plan: Drawn, text: str, tokens: int, seconds: float) -> Updates:
    train = recipe.train
    an_epoch = plan.updates_an_epoch
    ends = {
        "steps": train.steps,
        "epochs": train.epochs * an_epoch if train.epochs and an_epoch else None,
        "minutes": 60 * train.minutes / seconds if train.minutes else None,
    }
    known = {name: float(end) for name, end in ends.items() if end}
    ended_by = min(known, key=lambda name: known[name]) if known else ""
    source, target = (float(side.sum()) / plan.updates for side in (plan.source, plan.target))
    return Updates(tokens, plan.batches, source, target, an_epoch, known.get(ended_by), ended_by, text)


def _computed(recipe: Recipe, gpu: Gpu, gpus: int, work: Work) -> Time:
    """By what GPUs can do, and the share of it that training is assumed to reach."""
    precision = gpu.arithmetic(recipe.train.precision)
    tflops, share = gpu.tflops(precision), UTILISATION[precision]
    seconds = work.all / (gpus * tflops * 1e12 * share)
    return Time(False, gpu.name, gpus, precision, None, seconds, None, gpu.float32, tflops, share)


def _measured(recipe: Recipe, plan: Drawn, sizes: Sizes, work: Work, least: int) -> tuple[Time, Pace]:
    """By updates on this machine, of a model whose weights, gradients and moments take `least` bytes."""
    import torch

    from nmt.model.kernels import team
    from nmt.train.memory import available
    from nmt.train.pace import measure
    from nmt.train.room import memory_for

    if recipe.train.threads:
        torch.set_num_threads(recipe.train.threads)
    team.make_whole()
    try:
        device = choose(recipe.train.device)
    except NmtError as error:
        raise NmtError(
            f"[train] {error.problem}", "--set train.device=cpu measures there; --gpu NAME computes"
        ) from error
    precision = arithmetic(recipe.train.precision, device)
    if least > (free := available(device)):
        needed = f"weights, gradients and moments need {least / 1e9:,.3g} GB, and {free / 1e9:,.3g} GB are free"
        raise TrainingError(f"{_called(device)}: {needed}: nothing can be measured", COMPUTE)
    with memory_for("measuring", 0, COMPUTE):
        model = recipe.model.build(sizes.source, sizes.target, plan.pairs.pad)
        model.to(device)
        pace = measure(
            model,
            recipe.train.optimizer.build(model, precision),
            _batches(plan),
            rules=replace(recipe.train.rules(precision), guide=None),
            pad=plan.pairs.pad,
            flops=lambda batch: _passes(recipe) * batch_work(recipe.model, sizes.target, batch, plan.pairs.pad).all,
        )  # none of whose layers is left out
    seconds, threads = pace.update_seconds(work.all), torch.get_num_threads() if device.type == "cpu" else None
    time = Time(True, _called(device), 1, precision, threads, seconds, None, _sustained(device))
    return replace(time, updates_measured=pace.updates), pace


def _batches(plan: Drawn) -> Iterator[list[Batch]]:
    """The updates' batches, again and again."""
    for update in cycle(plan.pairs.updates(0, 0)):
        yield [plan.pairs.load(rows) for rows in update]


def _called(device: torch.device) -> str:
    import torch

    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def _sustained(device: torch.device) -> float:
    """TFLOPS of this machine in float32: the vendor's where it is a known GPU, else those of a matrix product."""
    from nmt.train.pace import matrix_product_speed

    known = of_device(_called(device))
    return known.float32 if known else matrix_product_speed(device, "float32", size=768, runs=3) / 1e12
