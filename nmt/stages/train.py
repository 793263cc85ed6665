"""The stage train: from shards to checkpoints, going on from the newest one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.batches.buckets import BatchOrder
from nmt.checkpoint import layout
from nmt.checkpoint.layout import Description, Origin
from nmt.errors import DataError
from nmt.events import Caution, Event, Notice
from nmt.recipe import Recipe, is_default
from nmt.schema import fingerprint
from nmt.stages.bpe import vocabulary_files
from nmt.stages.methods import aligned, sampled, side_limits
from nmt.stages.outset import check_frozen, fresh_model, placed, told_of_data
from nmt.stages.parent import check_parent, parent_of, told_of_parent
from nmt.stages.stage import TOLD, RunFolder
from nmt.stages.training import corpora_of, open_shards, report_of
from nmt.train.resume import check_fixed, told_changes
from nmt.train.seeds import derive
from nmt.train.state import State, read_record, resumable

if TYPE_CHECKING:
    import numpy as np
    import torch

    from nmt.model.seq2seq import Seq2Seq
    from nmt.subwords.vocabulary import Vocabulary
    from nmt.train.data import Pairs
    from nmt.train.ranks import Ranks
    from nmt.train.store import Store


def run(recipe: Recipe, run: RunFolder, ranks: Ranks | None = None) -> Iterator[Event]:
    """Train into `run.checkpoints` and tell `run.journal`. The same call goes on where an earlier one ended.

    `ranks` are the processes that make this call together, of which only the first writes. The last event is Stopped;
    its `interrupted` says whether a signal ended it early. Raises what `fit` raises, DataError for damaged shards,
    NmtError for a device that isn't there.
    """
    import torch

    from nmt.stages.recorded import recorded
    from nmt.stages.settle import settled
    from nmt.stages.validation import validator
    from nmt.subwords.vocabulary import Vocabulary
    from nmt.train.ema import Ema
    from nmt.train.fit import fit
    from nmt.train.kernels import attention_kernels
    from nmt.train.ranks import Ranks
    from nmt.train.room import SMALLER_MODEL, memory_for
    from nmt.train.signals import stop_on_signals
    from nmt.train.store import Helper, Store

    ranks = ranks or Ranks()
    if not ranks.call():
        return
    with memory_for("before the first update", ranks.rank, SMALLER_MODEL):
        device, precision = yield from placed(recipe, ranks)
        files = vocabulary_files(run, recipe.bpe.shared)
        source, target = Vocabulary.load(files["source"]), Vocabulary.load(files["target"])
        sizes = len(source), len(target), target.pad
        recipe = yield from settled(recipe, run, sizes, device, precision, ranks)
        pairs, order = training_pairs(recipe, run, target)
        yield from told_of_data(recipe, run, order)
        model = yield from fresh_model(recipe, run, sizes, files, device, ranks)
        parent = parent_of(recipe)
        optimizer = recipe.train.optimizer.build(model, precision)
        torch.manual_seed(derive(recipe.seed, "dropout"))

        decay = recipe.train.ema_decay
        ema = Ema(model, decay) if decay is not None else None
        copied = copied_files(recipe, run)
        description = describe(recipe, run, copied, sizes[:2])
        settings = compared_settings(recipe, run, description, order)
        how = {"every": recipe.train.save_every, "keep": recipe.train.keep_checkpoints}
        kind = Store if ranks.leads else Helper
        store = kind(run.checkpoints, description, copied, **how, settings=settings, ema=ema)
        state, told = resume(store, model, optimizer, ranks, partial(is_default, recipe))
        yield from told
        if parent and not state.step:
            yield from told_of_parent(recipe, parent)
        measure = validator(recipe, run, model, description, copied, device, precision, ranks, ema)
    order_of = partial(batch_order, recipe, run)
    with (
        stop_on_signals() as should_stop,
        attention_kernels(device),
        sampled(recipe, run, pairs, order_of, (source, target), ranks) as pairs_drawn,
    ):
        events = fit(
            model,
            optimizer,
            aligned(recipe, run, pairs_drawn, (source, target)),
            state,
            schedule=recipe.train.schedule.build(recipe.model.width, recipe.train.steps),
            rules=recipe.train.rules(precision, derive(recipe.seed, "layers")),
            evaluate=measure,
            store=store if ranks.leads or ranks.spreads else None,
            should_stop=should_stop,
            ranks=ranks,
            ema=ema,
        )
        yield from recorded(events, recipe, run, state, measure, ranks, device.type == "cpu")


def check(recipe: Recipe, run: RunFolder) -> None:
    """Raises TrainingError when the newest checkpoint there was trained for something else than `recipe` describes.

    TrainingError, too, when TensorBoard's package is missing that the recipe asks for, and for parts to freeze that the
    model does not have,
    RecipeError when the model to start from does not fit it, DataError when the alignments are missing.
    Vocabulary and data are compared later, when the stages ahead have made them.
    """
    check_parent(recipe, run)
    check_frozen(recipe)
    if recipe.train.tensorboard:
        from nmt.train.board import check_tensorboard

        check_tensorboard()
    guide = recipe.train.guided_alignment
    if guide and not guide.path.is_file():
        raise DataError(
            f"{guide.path}: there is no such file ([train.guided_alignment] path)",
            f"align {run.preprocess}/train.source and train.target, which nmt run RECIPE --to preprocess writes",
        )
    for newest in resumable(run.checkpoints)[-1:]:
        old = read_record(newest).get("settings", {})
        check_fixed(old, {"fixed": fixed_settings(recipe)}, str(newest))


def resume(
    store: Store,
    model: Seq2Seq,
    optimizer: torch.optim.Optimizer,
    ranks: Ranks,
    is_default: Callable[[str, Any], bool],
) -> tuple[State, list[Event]]:
    """The state to begin with: that of the newest checkpoint, put into model and optimizer, or a fresh one."""
    told: list[Event] = []
    if ranks.leads and (leftovers := store.recover()):
        told.append(Notice(f"removed {len(leftovers)} unfinished files of an earlier run in {store.folder}"))
    newest = ranks.first(store.newest)
    if newest is None:
        return State(), told
    old = read_record(newest).get("settings", {})
    check_fixed(old, store.settings, str(newest))
    state = store.restore(newest, model, optimizer)
    changes, reordered = told_changes(old, store.settings, is_default)
    if changes:
        told.append(Caution(f"{newest}: going on under changed settings: {'; '.join(changes)}"))
    told += _other_metric(old, store, state, ranks)
    if reordered and state.update:
        state.begin_epoch()
        told.append(Caution(f"the data comes in another order, so epoch {state.epoch + 1} starts from its beginning"))
    told.append(Notice(f"going on from {newest}"))
    return state, told


def _other_metric(old: dict[str, Any], store: Store, state: State, ranks: Ranks) -> Iterator[Event]:
    """Where the best is another thing than it was, it is looked for among the checkpoints that there are."""
    was, by = (settings.get("told", {}).get("train", {}).get("best_by") for settings in (old, store.settings))
    if not was or was == by or not state.validated:
        return
    state.judge_anew(ranks.first(lambda: store.best_by(by)))
    best = "none of those left was measured" if state.best_step is None else f"of those left, step {state.best_step}"
    told = f"the best checkpoint goes by {by}, no longer by {was}: {best}; patience counts from here"
    yield Caution(f"{store.folder}: {told}")


def training_pairs(recipe: Recipe, run: RunFolder, vocabulary: Vocabulary) -> tuple[Pairs, BatchOrder]:
    """The training pairs, and their seeded order."""
    from nmt.train.data import Pairs

    source, target = open_shards(run, "train")
    for shard in (source, target, *open_shards(run, "valid")):
        shard.verify()
    order = batch_order(recipe, run, source.lengths, target.lengths)
    marks = {"bos": vocabulary.bos, "eos": vocabulary.eos, "pad": vocabulary.pad}
    return Pairs(source, target, order, **marks), order


def batch_order(recipe: Recipe, run: RunFolder, source_lengths: np.ndarray, target_lengths: np.ndarray) -> BatchOrder:
    """The batches of training sentences with these lengths."""
    assert recipe.train.batch_tokens != "auto"
    max_source_tokens, max_target_tokens = side_limits(recipe)
    return BatchOrder(
        source_lengths,
        target_lengths,
        batch_tokens=recipe.train.batch_tokens,
        accumulate=recipe.train.accumulate,
        max_source_tokens=max_source_tokens,
        max_target_tokens=max_target_tokens,
        seed=derive(recipe.seed, "data"),
        corpora=corpora_of(run, recipe.train.corpus_temperature),
    )


def copied_files(recipe: Recipe, run: RunFolder) -> dict[str, Path]:
    """The files that travel with every checkpoint, by their name in its folder."""
    files = {path.name: path for path in vocabulary_files(run, recipe.bpe.shared).values()}
    truecase = (run.preprocess / name for name in (layout.SOURCE_TRUECASE, layout.TARGET_TRUECASE))
    if recipe.preprocess.moses and recipe.preprocess.moses.truecase:
        files |= {path.name: path for path in truecase if path.is_file()}
    return files


def describe(recipe: Recipe, run: RunFolder, files: dict[str, Path], sizes: tuple[int, int]) -> Description:
    """The model.json of this recipe's models."""
    report, parent = report_of(run), parent_of(recipe)
    limit = recipe.model.max_length() or recipe.train.max_source_tokens
    return Description(
        languages=recipe.languages,
        model=recipe.model,
        text=recipe.preprocess.text(),
        translate=recipe.translate,
        shared_vocabulary=recipe.bpe.shared,
        source_size=sizes[0],
        target_size=sizes[1],
        vocabulary_sha256=layout.digests(files),
        max_source_tokens=min(limit, recipe.train.max_source_tokens),
        needs_tag=all(corpus.tag for corpus in recipe.data.train),
        context_sentences=recipe.preprocess.context_sentences,
        origin=Origin(
            name=recipe.name,
            corpora=tuple(str(corpus["name"]) for corpus in report.get("corpora", ())),
            training_pairs=report.get("kept"),
            seed=recipe.seed,
            recipe=fingerprint(recipe.model_dump(mode="json", exclude=_untold(recipe))),
            parent=parent.origin if parent else None,
        ),
    )


def _untold(recipe: Recipe) -> dict[str, Any]:
    """What of the recipe a fingerprint leaves out: keys of later versions too, where they change nothing."""
    later: dict[str, Any] = {} if recipe.preprocess.context_sentences else {"preprocess": {"context_sentences"}}
    unset = set() if recipe.train.compile else {"compile"}
    return {"name": True, "data": True, **later, "train": {*unset, *TOLD}}


def compared_settings(recipe: Recipe, run: RunFolder, description: Description, order: BatchOrder) -> dict[str, Any]:
    """What a restart is compared with: see nmt.train.resume."""
    source, target = open_shards(run, "train")
    data = {"source": source.sha256, "target": target.sha256}
    shape = recipe.model.shape()
    model = recipe.model.model_dump(mode="json", exclude={"preset"})
    return {
        "fixed": {**fixed_settings(recipe), "vocabulary": description.vocabulary_sha256, "data": data},
        "told": {
            "seed": recipe.seed,
            **({} if order.whole else {"groups": order.groups}),
            "corpora": [[count, weight] for count, weight in corpora_of(run, recipe.train.corpus_temperature)],
            "model": {key: value for key, value in model.items() if key not in shape},
            "train": recipe.train.model_dump(mode="json", exclude={"start_from", *TOLD}),  # the parent is fixed
        },
    }


def fixed_settings(recipe: Recipe) -> dict[str, Any]:
    """What of the recipe must stay as it is while training goes on: a model, its text, whose moments are kept."""
    parent = parent_of(recipe)
    return {
        **({"start_from": {"weights": parent.weights_sha256}} if parent else {}),
        "model": recipe.model.shape(),
        "languages": recipe.languages.model_dump(mode="json"),
        "preprocess": recipe.preprocess.text().model_dump(mode="json"),
        "optimizer": {"kind": recipe.train.optimizer.kind},
    }
