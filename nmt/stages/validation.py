"""What measures a model while it is trained: on every validation set of the recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.batches.buckets import BatchOrder
from nmt.checkpoint.layout import Description
from nmt.corpus.config import PlainConfig, TsvConfig
from nmt.recipe import Recipe
from nmt.score.config import BleuConfig, ChrfConfig
from nmt.stages.stage import RunFolder
from nmt.stages.training import open_shards
from nmt.train.seeds import derive

if TYPE_CHECKING:
    import torch

    from nmt.model.seq2seq import Seq2Seq
    from nmt.train.ema import Ema
    from nmt.train.ranks import Ranks
    from nmt.train.validate import Held, Validator


def validator(
    recipe: Recipe,
    run: RunFolder,
    model: Seq2Seq,
    description: Description,
    files: Mapping[str, Path],
    device: torch.device,
    precision: str,
    ranks: Ranks,
    ema: Ema | None = None,
) -> Validator:
    """What measures the model: its loss on the shards, its translations on the raw text of every set."""
    from nmt.checkpoint.load import build_translator
    from nmt.train.data import Pairs
    from nmt.train.validate import Validator

    source, target = open_shards(run, "valid")
    longest = 1 + max(int(source.lengths.max(initial=0)), int(target.lengths.max(initial=0)))
    limit = recipe.model.max_length() or longest
    assert recipe.train.batch_tokens != "auto"
    order = BatchOrder(  # one long pair must not be left out of the loss for the sake of a budget
        source.lengths,
        target.lengths,
        batch_tokens=max(longest, recipe.train.batch_tokens),
        accumulate=1,
        max_source_tokens=limit,
        max_target_tokens=limit,
        seed=derive(recipe.seed, "data"),
    )
    translator = build_translator(files, description, model, device)
    pad, bos, eos = (getattr(translator.target_vocabulary, name) for name in ("pad", "bos", "eos"))
    sets = [held_out(one, recipe) for one in recipe.data.valid_sets]
    if len({held.name for held in sets}) < len(sets):
        sets = [replace(held, name=f"{held.name} {number}") for number, held in enumerate(sets, 1)]
    return Validator(
        model,
        Pairs(source, target, order, bos=bos, eos=eos, pad=pad),
        translator,
        sets[0].sources,
        sets[0].references,
        sets[0].metrics,
        beam=recipe.train.valid_beam,
        precision=precision,
        ranks=ranks,
        sets=sets if len(sets) > 1 else (),
        ema=ema,
    )


def held_out(entry: PlainConfig | TsvConfig, recipe: Recipe) -> Held:
    """The raw text of a validation set, and what scores it."""
    from nmt.search.context import Lines
    from nmt.search.control.request import Request
    from nmt.train.validate import Held

    source, lines = entry.build(), Lines(recipe.preprocess.context_sentences)
    led = entry.tag or recipe.preprocess.context_sentences
    raw = list(source.pairs(recipe.preprocess.on_bad_bytes))[: recipe.train.valid_lines]
    language = entry.target_language or recipe.languages.target
    bleu = next((m for m in recipe.score.metrics if isinstance(m, BleuConfig)), BleuConfig())
    chrf = next((m for m in recipe.score.metrics if isinstance(m, ChrfConfig)), ChrfConfig())
    return Held(
        [lines.follow(Request(line, tag=entry.tag or "")) if led else line for line, _ in raw],
        [line for _, line in raw],
        {"bleu": bleu.build(language), "chrf": chrf.build(language)},
        name=entry.tag or source.name,
    )
