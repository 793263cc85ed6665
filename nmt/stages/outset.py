"""What training begins with: where it computes, what is told of its data, and the model."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.batches.buckets import BatchOrder
from nmt.events import Caution, Event, Notice
from nmt.recipe import Recipe
from nmt.stages.parent import begin, check_vocabulary, parent_of
from nmt.stages.stage import RunFolder
from nmt.stages.training import told_of_corpora
from nmt.train.config import Precision
from nmt.train.seeds import derive
from nmt.train.state import resumable
from nmt.wording import counted

if TYPE_CHECKING:
    import torch

    from nmt.model.seq2seq import Seq2Seq
    from nmt.train.ranks import Ranks

_ANY_SIZE = 4  # of a vocabulary, where only the names of weights are asked for


def placed(recipe: Recipe, ranks: Ranks) -> Generator[Event, None, tuple[torch.device, Precision]]:
    """The device and the precision that the recipe means on this machine. Raises NmtError where it lacks them."""
    import torch

    from nmt.checkpoint.device import arithmetic
    from nmt.model.kernels import team

    if recipe.train.threads:
        torch.set_num_threads(recipe.train.threads)
    asked = torch.get_num_threads()
    team.make_whole()
    if (threads := torch.get_num_threads()) < asked:
        most = counted(threads, "thread")
        yield Caution(f"OpenMP gives {most} at most (OMP_THREAD_LIMIT): training takes no more, not {asked}")
    device = ranks.place(recipe.train.device)
    precision = arithmetic(recipe.train.precision, device)
    processes = f", {ranks.size} processes" if ranks.size > 1 else ""
    yield Notice(f"training on {device} in {precision}, {counted(torch.get_num_threads(), 'thread')}{processes}")
    if recipe.train.accumulate % ranks.size:
        batches = counted(recipe.train.accumulate, "batch an update does", "batches an update do")
        yield Notice(
            f"{batches} not go round among {ranks.size} processes, so some are split; "
            f"with train.accumulate = {ranks.size} each would have a whole one, in larger updates"
        )
    return device, precision


def told_of_data(recipe: Recipe, run: RunFolder, order: BatchOrder) -> Iterator[Event]:
    """How the pairs are drawn, what is left out, and checkpoints that will be missing later."""
    yield from told_of_corpora(run, recipe.train.corpus_temperature)
    if not order.whole:
        yield Notice(f"an epoch is planned in {order.groups} groups, of which each is a random part of the pairs")
    if order.skipped:
        left = counted(order.skipped, "training pair is", "training pairs are")
        most, train = recipe.model.max_length(), recipe.train
        few = most is not None and most < max(train.max_source_tokens, train.max_target_tokens)
        places = f", or than [model.position] length = {most}" if few else ""
        yield Caution(f"{left} left out: longer than the limits of [train]{places}")
    if recipe.average.of == "last" and recipe.average.count > recipe.train.keep_checkpoints:
        counts = f"[average] count = {recipe.average.count}, [train] keep_checkpoints = {recipe.train.keep_checkpoints}"
        yield Caution(f"{counts}: fewer checkpoints are kept than are to be averaged")


def check_frozen(recipe: Recipe) -> None:
    """Raises TrainingError for parts to freeze that the model does not have, and where all would be frozen."""
    if not recipe.train.freeze:
        return
    import torch

    from nmt.train.freeze import freeze

    with torch.device("meta"):
        model = recipe.model.build(_ANY_SIZE, _ANY_SIZE, 0)
    freeze(model, recipe.train.freeze)


def fresh_model(
    recipe: Recipe,
    run: RunFolder,
    sizes: tuple[int, int, int],
    files: dict[str, Path],
    device: torch.device,
    ranks: Ranks,
) -> Generator[Event, None, Seq2Seq]:
    """The model on its device, with its first weights or those that training starts from.

    `sizes` are those of the source and the target vocabulary, and the padding id; `files` are the vocabularies'.
    Raises TrainingError for parts to freeze that are not there, RecipeError where the model to start from doesn't fit.
    """
    import torch

    from nmt.train.freeze import freeze

    model = recipe.model.build(*sizes)
    model.initialize(torch.Generator().manual_seed(derive(recipe.seed, "init")))
    if recipe.train.freeze:
        frozen = set(freeze(model, recipe.train.freeze))
        numbers = {name: p.numel() for name, p in model.named_parameters()}
        count, parts = sum(numbers[name] for name in frozen), ", ".join(recipe.train.freeze)
        yield Notice(f"frozen: {parts}: {count:,} of {sum(numbers.values()):,} weights")
    if parent := parent_of(recipe):
        check_vocabulary(parent, files)
        if not resumable(run.checkpoints):
            begin(parent, model)
    if not ranks.spreads:
        model.to(device)
    ranks.spread(model)
    if recipe.train.compile:
        from nmt.train.compiled import compile_layers

        yield Notice("layers are compiled when they are first needed; the first updates take minutes")
        compile_layers(model)
    return model
