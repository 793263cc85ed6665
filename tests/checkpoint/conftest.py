"""A complete model folder of a toy model with a vocabulary of its own."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nmt.checkpoint.layout import SHARED_VOCABULARY, Description, Origin, digests
from nmt.checkpoint.save import save_model
from nmt.corpus.config import LanguagesConfig
from nmt.model.config import DotConfig, TransformerConfig
from nmt.model.seq2seq import Seq2Seq
from nmt.search.config import SearchConfig
from nmt.subwords.learn import learn
from nmt.subwords.vocabulary import Vocabulary

CONFIG = TransformerConfig(
    width=8, feedforward=16, encoder_layers=1, decoder_layers=1, dropout=0.1, attention=DotConfig(heads=2)
)
Save = Callable[..., Path]


def learned(folder: Path, seed: int) -> Path:
    chance = random.Random(seed)
    words = ["".join(chance.choices("abcdefgh", k=4)) for _ in range(30)]
    text = folder / "text"
    text.write_text("".join(" ".join(chance.choices(words, k=5)) + "\n" for _ in range(200)))
    output = folder / SHARED_VOCABULARY
    settings = {"split_digits": True, "character_coverage": 1.0, "sentences": 1000, "seed": 1}
    for _ in learn([text], output, kind="bpe", size=300, byte_fallback=True, **settings):
        pass
    return output


@pytest.fixture(scope="session")
def vocabulary(tmp_path_factory) -> Path:
    return learned(tmp_path_factory.mktemp("vocabulary"), 1)


@pytest.fixture(scope="session")
def other_vocabulary(tmp_path_factory) -> Path:
    return learned(tmp_path_factory.mktemp("other"), 2)


def toy(size: int, seed: int = 1, config: TransformerConfig = CONFIG) -> Seq2Seq:
    model = config.build(size, size, 0)
    model.initialize(torch.Generator().manual_seed(seed))
    return model


@pytest.fixture
def save(vocabulary: Path) -> Save:
    """Writes a model folder: ``save(folder, seed=2, step=10)``."""
    size = len(Vocabulary.load(vocabulary))

    def write(folder: Path, seed: int = 1, step: int = 1, config: TransformerConfig = CONFIG, **changes) -> Path:
        files = {SHARED_VOCABULARY: vocabulary}
        description = Description(
            languages=LanguagesConfig(source="en", target="de"),
            model=config,
            translate=SearchConfig(beam=2, max_extra_tokens=5),
            shared_vocabulary=True,
            source_size=size,
            target_size=size,
            vocabulary_sha256=digests(files),
            max_source_tokens=30,
            origin=Origin(name="toy", corpora=("a.en + a.de",), training_pairs=1234, seed=1, steps=(step,)),
        ).model_copy(update=changes)
        save_model(folder, toy(size, seed, config), description, files)
        return folder

    return write


@pytest.fixture
def model(save: Save, tmp_path: Path) -> Path:
    return save(tmp_path / "model")
