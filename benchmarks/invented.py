"""Text and models out of nothing, for machines that have neither: their speed is that of real ones of the same size."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import torch

from nmt.corpus.clean import Cleaner
from nmt.model.config import TransformerConfig
from nmt.search.config import SearchConfig
from nmt.search.translate import Translator
from nmt.subwords.learn import learn
from nmt.subwords.vocabulary import Vocabulary

_SYLLABLES = [a + b + c for a in ("", *"bdfgklmnprst") for b in "aeiou" for c in ("", *"nrst")]
SURE = 10.0  # so strongly does a last state point away from the end mark, and so strongly does the mark answer


def words(count: int) -> list[str]:
    """About so many different words, short ones first; always the same."""
    draw = random.Random(1)
    return sorted({"".join(draw.choices(_SYLLABLES, k=draw.randint(1, 4))) for _ in range(count)}, key=len)


def text(count: int, known: Sequence[str], seed: int) -> list[str]:
    """Sentences of about 20 words, as in news, of which the first are the most frequent."""
    draw, shares = random.Random(seed), list(accumulate(1 / (rank + 3) for rank in range(len(known))))
    lengths = (min(max(round(draw.lognormvariate(2.9, 0.5)), 1), 100) for _ in range(count))
    return [" ".join(draw.choices(known, cum_weights=shares, k=length)) for length in lengths]


def translator(preset: str, pieces: int, folder: Path, device: torch.device) -> Translator:
    """A model of random weights, which never chooses to end: a translation has as many tokens as its source."""
    path, corpus = folder / f"{preset}.model", folder / "corpus"
    corpus.write_text("\n".join(words(2 * pieces)) + "\n", encoding="utf-8")
    settings = {"kind": "bpe", "byte_fallback": True, "split_digits": True, "character_coverage": 1.0}
    for _ in learn([corpus], path, size=pieces, sentences=10_000_000, seed=1, **settings):
        pass
    vocabulary = Vocabulary.load(path)
    model = TransformerConfig.model_validate({"preset": preset}).build(len(vocabulary), len(vocabulary), vocabulary.pad)
    norm = model.decoder.norm if model.decoder.norm.__class__ is torch.nn.LayerNorm else None
    norm = norm or model.decoder.layers[-1].feedforward_residual.norm
    with torch.no_grad():
        norm.bias[0] += SURE
        model.output_weight_VD[vocabulary.eos].zero_()[0] = -SURE
    cleaner = Cleaner("en")
    return Translator(
        model.requires_grad_(False).eval(),
        vocabulary,
        vocabulary,
        cleaner,
        cleaner,
        max_source_tokens=256,
        settings=SearchConfig(max_extra_tokens=0),
        device=device,
    )
