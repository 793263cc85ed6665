"""Open a model folder, having checked first that its parts belong together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from nmt.checkpoint import layout
from nmt.checkpoint.device import choose
from nmt.checkpoint.header import check_weights, read_shapes
from nmt.checkpoint.layout import Description, read_description, resolve
from nmt.checkpoint.tensors import KINDS, first_not_finite, read_tensors, spread_like, weights
from nmt.errors import ModelError
from nmt.files import read_json, sha256
from nmt.model.seq2seq import Seq2Seq
from nmt.search.translate import Translator
from nmt.subwords.vocabulary import Vocabulary

_AGAIN = "take another checkpoint, or copy the file again"
_TOGETHER = "the folder's files do not belong together; take them all from one checkpoint"


def load_model(folder: Path, device: torch.device | str = "cpu") -> tuple[Description, Seq2Seq]:
    """The description and the model, in evaluation mode, of a complete model folder.

    Sizes and digests are compared before a weight is read. Raises ModelError naming the first thing that is wrong.
    """
    description = read_description(folder)
    source, target = check_vocabularies(folder, description)
    _check_file(folder / layout.WEIGHTS, description)
    model = description.model.build(len(source), len(target), source.pad, blank=True)
    load_weights(model, folder / layout.WEIGHTS)
    return description, model.to(device).eval()


def load_weights(model: Seq2Seq, path: Path) -> None:
    """Fill `model` from a weights file that holds exactly its names, shapes and types. Tied weights stay tied.

    Raises ModelError, also for a weight that is not finite.
    """
    own = weights(model)
    _check_header(path, own)
    stored = read_tensors(path)
    bad = first_not_finite(stored)
    if bad is not None:
        raise ModelError(f"{path}: {bad} holds a value that is not finite", _AGAIN)
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(spread_like(stored[name], tensor))


def put_weights(model: Seq2Seq, path: Path) -> None:
    """Put the weights that the file holds, some or all of the model's, into `model`. Raises ModelError."""
    own = weights(model)
    for name, tensor in read_tensors(path).items():
        if name not in own or own[name].shape != tensor.shape or own[name].dtype != tensor.dtype:
            raise ModelError(f"{path}: {name} is no weight of this model", _AGAIN)
        own[name].copy_(spread_like(tensor, own[name]))


def check_checkpoint(folder: Path) -> None:
    """Raises ModelError naming the first file of a checkpoint that is missing or not as it was saved.

    Checkpoints from before some of the digests are compared as far as they have any.
    """
    hint = f"copy the file again, or remove {folder} to go on from the one before"
    expected: dict[str, object] = {layout.WEIGHTS: read_description(folder).weights_sha256}
    told = folder / layout.RESUME / layout.DIGESTS
    if told.is_file():
        digests = read_json(told)
        if not isinstance(digests, dict):
            raise ModelError(f"{told}: is damaged: it lists no digests", hint)
        expected |= {f"{layout.RESUME}/{name}": digest for name, digest in digests.items()}
    for name, digest in expected.items():
        path = folder / name
        if not path.is_file():
            raise ModelError(f"{path}: is missing", hint)
        if digest is not None and sha256(path) != digest:
            raise ModelError(f"{path}: is damaged: its sha256 differs from the one it was saved with", hint)


def _check_file(path: Path, description: Description) -> None:
    """Raises ModelError unless the file is that of the model described: found out before any memory is taken."""
    config, stored = description.model, read_shapes(path)
    layers = config.encoder_layers + config.decoder_layers
    if layers > len(stored):
        raise ModelError(f"{path}: holds {len(stored)} tensors; model.json describes {layers} layers", _TOGETHER)
    try:
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            outline = config.build(description.source_size, description.target_size, 0)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        problem = f"{path.with_name(layout.DESCRIPTION)}: model: describes sizes that no model can have"
        raise ModelError(problem, _TOGETHER) from error
    _check_header(path, weights(outline))
    if description.weights_sha256 is not None and sha256(path) != description.weights_sha256:
        raise ModelError(f"{path}: is damaged: its sha256 differs from the one in model.json", _AGAIN)


def _check_header(path: Path, own: Mapping[str, torch.Tensor]) -> None:
    shapes = {name: tuple(tensor.shape) for name, tensor in own.items()}
    check_weights(path, shapes, {name: KINDS[tensor.dtype] for name, tensor in own.items()})


def check_vocabularies(folder: Path, description: Description) -> tuple[Vocabulary, Vocabulary]:
    """Both sides' vocabularies, which must be the very files the model was trained with. Raises ModelError."""
    for name, digest in description.vocabulary_sha256.items():
        if not (folder / name).is_file():
            raise ModelError(f"{folder / name}: is missing", "copy the whole model folder")
        if sha256(folder / name) != digest:
            raise ModelError(
                f"{folder / name}: is not the file this model was trained with (its sha256 differs from model.json)",
                "copy the file that lay beside these weights",
            )
    paths = folder / description.source_vocabulary, folder / description.target_vocabulary
    source = Vocabulary.load(paths[0])
    target = source if description.shared_vocabulary else Vocabulary.load(paths[1])
    for path, vocabulary, size in (
        (paths[0], source, description.source_size),
        (paths[1], target, description.target_size),
    ):
        if len(vocabulary) != size:
            raise ModelError(
                f"{path}: has {len(vocabulary)} pieces; model.json tells {size}",
                "copy the file that lay beside these weights",
            )
    return source, target


def load_translator(model: Path | str, device: str = "auto", threads: int | None = None) -> Translator:
    """A translator of raw text from a run folder, a checkpoint or an exported model. Raises ModelError, NmtError.

    `threads` sets torch's CPU threads for the whole process.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    chosen = choose(device)
    folder = resolve(Path(model))
    description, loaded = load_model(folder, chosen)
    files = {name: folder / name for name in description.vocabulary_sha256}
    return build_translator(files, description, loaded.requires_grad_(False), chosen)  # it won't learn any more


def build_translator(
    files: Mapping[str, Path], description: Description, model: Seq2Seq, device: torch.device
) -> Translator:
    """A translator around `model`, with the vocabulary and truecase files that stand under these names."""
    source = Vocabulary.load(files[description.source_vocabulary])
    target = source if description.shared_vocabulary else Vocabulary.load(files[description.target_vocabulary])
    return Translator(
        model,
        source,
        target,
        description.text.build(description.languages.source, files.get(layout.SOURCE_TRUECASE)),
        description.text.build(description.languages.target, files.get(layout.TARGET_TRUECASE)),
        max_source_tokens=description.translate.max_source_tokens or description.max_source_tokens,
        settings=description.translate,
        device=device,
        needs_tag=description.needs_tag,
        context_sentences=description.context_sentences,
    )
