"""Tiny models with random weights: flat distributions make every fault of search visible at once."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import torch
from tasks import WORDS

from nmt.corpus.clean import Cleaner
from nmt.model.config import TransformerConfig
from nmt.model.seq2seq import Seq2Seq
from nmt.search.config import SearchConfig
from nmt.search.translate import Translator
from nmt.subwords.learn import learn
from nmt.subwords.vocabulary import Vocabulary


def sentences(count: int, longest: int = 8, seed: int = 13) -> list[str]:
    """Made-up sentences of 1 to `longest` words."""
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, longest))) for _ in range(count)]


def learn_vocabulary(folder: Path, size: int = 340) -> Path:
    """A subword model of the made-up words, bytes included, in `folder`."""
    text = folder / "words.txt"
    text.write_text("\n".join(sentences(400)) + "\n", encoding="utf-8")
    path = folder / "vocabulary.model"
    settings = {"kind": "bpe", "byte_fallback": True, "split_digits": True, "character_coverage": 1.0}
    for _ in learn([text], path, size=size, sentences=10_000, seed=1, **settings):
        pass
    return path


CONFIG = TransformerConfig.model_validate(
    {
        "width": 16,
        "feedforward": 32,
        "encoder_layers": 1,
        "decoder_layers": 2,
        "attention": {"heads": 2},
        "tie_embeddings": "none",
        "dropout": 0.5,
    }
)


@cache
def random_model(size: int, seed: int = 7, config: TransformerConfig = CONFIG, opinions: float = 4) -> Seq2Seq:
    """A model that has learned nothing, with weights so large that it has opinions, and that half its lines end."""
    model = config.build(size, size, 0)
    model.initialize(torch.Generator().manual_seed(seed))
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(opinions)
        model.output_weight_VD[Vocabulary.eos].mul_(1.5)
    return model.requires_grad_(False).eval()


def translator(path: Path, language: str = "de", limit: int = 64, model: Seq2Seq | None = None) -> Translator:
    """A translator around a random model and the vocabulary at `path`."""
    vocabulary = Vocabulary.load(path)
    return Translator(
        model or random_model(len(vocabulary)),
        vocabulary,
        vocabulary,
        Cleaner("en"),
        Cleaner(language),
        max_source_tokens=limit,
        settings=SearchConfig(max_extra_tokens=5),
    )


def save_folder(
    folder: Path, vocabulary_path: Path, languages: tuple[str, str] = ("en", "de"), limit: int = 64
) -> Path:
    """A complete model folder around the random model."""
    from nmt.checkpoint.layout import SHARED_VOCABULARY, Description, digests
    from nmt.checkpoint.save import save_model

    model = random_model(len(Vocabulary.load(vocabulary_path)))
    files = {SHARED_VOCABULARY: vocabulary_path}
    description = Description.model_validate(
        {
            "languages": {"source": languages[0], "target": languages[1]},
            "model": CONFIG.model_dump(),
            "translate": {"max_extra_tokens": 5},
            "shared_vocabulary": True,
            "source_size": model.output_weight_VD.size(0),
            "target_size": model.output_weight_VD.size(0),
            "vocabulary_sha256": digests(files),
            "max_source_tokens": limit,
        }
    )
    save_model(folder, model, description, files)
    return folder
