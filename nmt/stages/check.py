"""Check a recipe without running it: what its values alone cannot tell."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from nmt.corpus.config import PlainConfig
from nmt.corpus.lines import read_lines
from nmt.corpus.sources.source import check_counts, language_of
from nmt.errors import DataError, NmtError, TrainingError
from nmt.recipe import Recipe
from nmt.stages.outset import check_frozen
from nmt.stages.parent import check_parent
from nmt.stages.stage import RunFolder, flatten
from nmt.wording import counted

FIRST_LINES = 1000
SPECIAL_PIECES, BYTE_PIECES = 4, 256


def problems(recipe: Recipe, run: RunFolder) -> Iterator[str]:
    """Everything that would stop or spoil a run of `recipe`, each as place + value + rule."""
    missing = list(_missing(recipe))
    yield from missing
    if not missing:
        yield from _text(recipe)
        yield from _counts(recipe)
        if recipe.train.start_from is None:  # else the pieces are there already
            yield from _pieces(recipe)
    yield from _parent(recipe, run)
    yield from _overlaps(recipe)
    yield from _languages(recipe)
    yield from _limits(recipe)
    yield from _frozen(recipe)
    yield from _device(recipe)
    yield from _disk(recipe, run)


def soon_found(recipe: Recipe) -> list[str]:
    """Those problems that cost no reading of text: files that are missing or empty, and sides of unequal length."""
    return list(dict.fromkeys([*_missing(recipe)] or [*_counts(recipe)]))


def _files(recipe: Recipe) -> list[tuple[str, Path]]:
    """What stages read. Where downloads go is told by `nmt download`, and they make the files of the sets."""
    found = [(key, value) for key, value in flatten(recipe.data, "data") if isinstance(value, Path)]
    found = [(key, value) for key, value in found if not key.startswith("data.download.")]
    guide = recipe.train.guided_alignment
    return [*found, *([("train.guided_alignment.path", guide.path)] if guide else [])]


def _missing(recipe: Recipe) -> Iterator[str]:
    for key, path in _files(recipe):
        if not path.exists():
            yield f"{path}: there is no such file ({key})"
        elif not path.is_file():
            yield f"{path}: is not a file ({key})"
        elif not os.access(path, os.R_OK):
            yield f"{path}: may not be read ({key})"


def _text(recipe: Recipe) -> Iterator[str]:
    """Bytes that aren't UTF-8 in the first lines, and files that do not decompress."""
    for _, path in _files(recipe):
        try:
            for _line in islice(read_lines(path, on_bad_bytes=recipe.preprocess.on_bad_bytes), FIRST_LINES):
                pass
        except DataError as error:
            yield error.problem


def _counts(recipe: Recipe) -> Iterator[str]:
    """Sides out of step, lines that lack a column, and nothing at all."""
    on_bad_bytes = recipe.preprocess.on_bad_bytes
    for corpus in (*recipe.data.train, *recipe.data.valid_sets):
        try:
            source = corpus.build()
            if not list(islice(source.pairs(on_bad_bytes), FIRST_LINES)):
                yield f"{corpus.files()[0]}: holds no lines"
            source.count()
        except DataError as error:
            yield error.problem
    for test in recipe.data.test:
        try:
            if check_counts(test.files()) == 0:
                yield f"{test.source}: holds no lines"
        except DataError as error:
            yield error.problem


def _pieces(recipe: Recipe) -> Iterator[str]:
    """A vocabulary that cannot hold the characters of the first lines. One that is too large stops nothing."""
    reserved = len(recipe.data.tags) + (recipe.preprocess.context_sentences > 0)
    fewest = SPECIAL_PIECES + reserved + (BYTE_PIECES if recipe.bpe.byte_fallback else 0)
    if recipe.bpe.size <= fewest:
        yield f"[bpe] size = {recipe.bpe.size}: {fewest} pieces are taken by special ids and bytes before any text"
        return
    letters: Counter[str] = Counter()
    for corpus in recipe.data.train:
        for path in corpus.files():
            for line in islice(read_lines(path, on_bad_bytes="replace"), 10 * FIRST_LINES):
                letters.update(line)
    least = fewest + _covering(letters, recipe.bpe.character_coverage)
    if recipe.bpe.size < least:
        yield f"[bpe] size = {recipe.bpe.size}: characters, bytes and special ids alone take {least} pieces"


def _covering(letters: Counter[str], coverage: float) -> int:
    """How many of the commonest characters make up so much of the text."""
    wanted, count = coverage * letters.total(), 0
    for _, times in letters.most_common():
        if wanted <= 0:
            break
        wanted, count = wanted - times, count + 1
    return count


def _parent(recipe: Recipe, run: RunFolder) -> Iterator[str]:
    """A model to start from that is missing, or that the recipe doesn't fit."""
    try:
        check_parent(recipe, run)
    except NmtError as error:
        yield error.problem


def _overlaps(recipe: Recipe) -> Iterator[str]:
    for corpus in (*recipe.data.train, *recipe.data.valid_sets):
        if isinstance(corpus, PlainConfig) and corpus.source == corpus.target:
            yield f"{corpus.source}: is both source and target"
    train = {path for corpus in recipe.data.train for path in corpus.files()}
    for key, path in _files(recipe):
        if path in train and not key.startswith("data.train"):
            yield f"{path}: is training data and {key} at once"


def _languages(recipe: Recipe) -> Iterator[str]:
    """Files whose names tell the other side's language."""
    for key, path in _files(recipe):
        side = next((part for part in reversed(key.split(".")) if part in {"source", "target"}), None)
        codes = {name: _language(recipe, key, name) for name in ("source", "target")}
        told = language_of(path)
        if side and told != codes[side] and told in codes.values():
            yield f"{path}: its name says {told}, and {key} is {codes[side]}: are the sides swapped?"


def _language(recipe: Recipe, key: str, side: str) -> str:
    """The language of one side of the set that `key` names a file of."""
    entry: Any = recipe
    for part in key.split("."):
        entry = entry[int(part)] if isinstance(entry, tuple) else getattr(entry, part)
        if own := getattr(entry, f"{side}_language", None):
            return str(own)
    return str(getattr(recipe.languages, side))


def _limits(recipe: Recipe) -> Iterator[str]:
    train = recipe.train
    for key in ("max_source_tokens", "max_target_tokens"):
        value, longest = getattr(train, key), recipe.model.max_length()
        if longest is not None and value > longest:
            yield f"[train] {key} = {value}: the model has [model.position] length = {longest} positions"
        if train.batch_tokens != "auto" and value > train.batch_tokens:
            yield f"[train] {key} = {value}: no such pair fits into batch_tokens = {train.batch_tokens}"
    if rising := train.rises_to_the_end():
        yield rising


def _frozen(recipe: Recipe) -> Iterator[str]:
    try:
        check_frozen(recipe)
    except TrainingError as error:
        yield f"{error.problem}; {error.hint}"


def _device(recipe: Recipe) -> Iterator[str]:
    if not recipe.train.device.startswith("cuda"):
        return
    import torch

    number = int(recipe.train.device.partition(":")[2] or 0)
    if number >= torch.cuda.device_count():
        there = counted(torch.cuda.device_count(), "GPU")
        yield f"[train] device = {recipe.train.device!r}: this machine has {there} for torch"


def _disk(recipe: Recipe, run: RunFolder) -> Iterator[str]:
    folder = run.path.absolute()
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        yield f"{folder}: is a file; the run folder {run.path} cannot be made"
        return
    if not os.access(folder, os.W_OK | os.X_OK):
        yield f"{folder}: may not be written; the run folder {run.path} would lie there"
    needed, free = _bytes(recipe), shutil.disk_usage(folder).free
    if needed > free:
        yield f"{folder}: {free / 1e9:.1f} GB are free; the run takes about {needed / 1e9:.1f} GB"


def _bytes(recipe: Recipe) -> int:
    """About what a run writes: text and ids, and checkpoints of weights, two moments, an average, four bytes each."""
    model = recipe.model
    square, ahead = model.width**2, 2 * model.width * model.feedforward
    layers = model.encoder_layers * (4 * square + ahead) + model.decoder_layers * (8 * square + ahead)
    tables = 1 if model.tie_embeddings == "all" else 2 if model.tie_embeddings == "target" else 3
    weights = layers + tables * recipe.bpe.size * model.width
    text = sum(path.stat().st_size for _, path in _files(recipe) if path.is_file())
    copies = 12 if recipe.train.ema_decay is None else 16
    return copies * weights * (recipe.train.keep_checkpoints + 2) + 4 * weights + 3 * text
