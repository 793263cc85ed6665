"""What transformers makes of an exported model is what ours makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from nmt.batches.batch import collate
from nmt.checkpoint.export import export
from nmt.checkpoint.formats.huggingface import CLASSES
from nmt.checkpoint.load import load_model, load_translator
from nmt.errors import ModelError

from .conftest import Make, lines

MODELS: list[dict[str, Any]] = [
    {"norm": "post", "activation": "relu", "tie_embeddings": "all"},
    {"norm": "post", "activation": "gelu", "tie_embeddings": "target"},
    {"norm": "post", "activation": "relu", "tie_embeddings": "none"},
    {"norm": "pre", "activation": "gelu", "tie_embeddings": "all"},
]
every_model = pytest.mark.parametrize("changes", MODELS, ids=lambda changes: "-".join(map(str, changes.values())))


def exported(folder: Path) -> Path:
    output = folder.with_name("exported")
    for _ in export(folder, output, "huggingface"):
        pass
    return output


def theirs(folder: Path, norm: str) -> Any:
    transformers = pytest.importorskip("transformers")
    return getattr(transformers, CLASSES[norm][1]).from_pretrained(folder).eval()


def tokenizer(folder: Path) -> Any:
    return pytest.importorskip("transformers").MarianTokenizer.from_pretrained(folder)


@every_model
def test_logits_agree(changes: dict[str, Any], make: Make) -> None:
    folder = make(**changes)
    vocabulary = load_translator(folder, "cpu").source_vocabulary
    ids = vocabulary.encode_many(lines())
    batch = collate(ids, ids[::-1], bos=vocabulary.bos, eos=vocabulary.eos, pad=vocabulary.pad)
    _, model = load_model(folder)
    found = theirs(exported(folder), changes["norm"])
    with torch.no_grad():
        mine = model.decode(model.encode(batch.src_BS, batch.keep_BS), batch.keep_BS, batch.tgt_BT)
        logits = found(batch.src_BS, attention_mask=batch.keep_BS, decoder_input_ids=batch.tgt_BT).logits
    real_BT = batch.out_BT != vocabulary.pad
    assert_close(logits[real_BT], mine[real_BT], atol=1e-4, rtol=0)


@pytest.mark.parametrize("norm", CLASSES)
def test_the_table_of_positions_is_theirs_computed_or_stored(norm: str, make: Make) -> None:
    model = theirs(exported(make(norm=norm)), norm)
    stored = model.model.decoder.embed_positions.weight
    assert_close(stored, model.model.decoder.embed_positions.create_weight(), atol=1e-6, rtol=0)


def test_their_tokenizer_gives_our_ids_and_text(make: Make) -> None:
    folder = make()
    ours, found = load_translator(folder, "cpu").source_vocabulary, tokenizer(exported(folder))
    for line in lines():
        ids = ours.encode(line)
        assert found(line)["input_ids"] == [*ids, ours.eos]
        assert found.decode(ids) == line.strip()


@pytest.mark.parametrize("norm", CLASSES)
def test_greedy_translations_agree(norm: str, make: Make) -> None:
    folder = make(norm=norm)
    translator = load_translator(folder, "cpu")
    model = theirs(exported(folder), norm)
    for line, mine in zip(lines(), translator.stream(lines(), beam=1, max_extra_tokens=5), strict=True):
        ids = translator.source_vocabulary.encode(line)
        found = model.generate(torch.tensor([[*ids, 3]]), num_beams=1, max_new_tokens=len(ids) + 5)[0, 1:].tolist()
        assert [translator.target_vocabulary.piece(i) for i in found if i != 3] == list(mine.best.tokens)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"position": {"kind": "rotary"}}, "rotary positions"),
        ({"position": {"kind": "learned"}}, "learned positions"),
        ({"norm": "pre", "tie_embeddings": "target"}, "pre-norm model whose source, target and output"),
        ({"attention": {"heads": 2, "value_width": 4}}, "heads that are not exactly"),
    ],
)
def test_what_transformers_lacks_is_refused_and_nothing_written(changes: dict[str, Any], what: str, make: Make) -> None:
    folder = make(**changes)
    with pytest.raises(ModelError, match=f"transformers cannot hold .*{what}") as problem:
        exported(folder)
    assert "--to safetensors" in problem.value.hint
    assert not [path for path in folder.parent.iterdir() if path.name.startswith("exported")]
