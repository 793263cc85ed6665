"""What may be said of subwords: the recipe's [bpe]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from nmt.events import Event
from nmt.schema import Config, Count


class SubwordConfig(Config):
    """Subword units learned with sentencepiece (Sennrich et al. 2016; Kudo 2018)."""

    kind: Literal["bpe", "unigram"] = "bpe"
    """Byte-pair encoding, or the unigram language model."""
    size: Count = Field(8000, ge=8)
    """Number of pieces, special ids, tags and byte pieces included; an upper bound for small corpora."""
    shared: bool = True
    """One vocabulary learned on both sides together, or one for each side."""
    byte_fallback: bool = True
    """Spell characters outside the vocabulary as bytes, so that nothing is unknown (takes 256 pieces)."""
    split_digits: bool = True
    """Every digit is a piece of its own, which keeps numbers intact."""
    character_coverage: float = Field(0.9999, ge=0.98, le=1)
    """Share of the text's characters that become pieces; the rest goes to bytes. Use 0.9995 for zh and ja."""
    sentences: Count = Field(5_000_000, ge=1)
    """Most training sentences to learn from; a larger corpus is sampled evenly with the recipe's seed, and said so."""

    def learn(self, texts: Sequence[Path], output: Path, seed: int, tags: Sequence[str] = ()) -> Iterator[Event]:
        """Learn the subwords of `texts` and write the model file `output`, with `tags`; see `nmt.subwords.learn`."""
        from nmt.subwords.learn import learn  # sentencepiece loads only once something is learned

        return learn(
            texts,
            output,
            kind=self.kind,
            size=self.size,
            byte_fallback=self.byte_fallback,
            split_digits=self.split_digits,
            character_coverage=self.character_coverage,
            sentences=self.sentences,
            seed=seed,
            tags=tags,
        )
