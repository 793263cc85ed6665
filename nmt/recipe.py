"""The recipe: every component's section together, read once and frozen."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from nmt.corpus.config import DataConfig, LanguagesConfig, PreprocessConfig
from nmt.errors import RecipeError
from nmt.model.config import ModelConfig, TransformerConfig
from nmt.schema import Config, check, read_toml
from nmt.score.config import ScoreConfig
from nmt.search.config import SearchConfig
from nmt.subwords.config import SubwordConfig
from nmt.train.config import AverageConfig, TrainConfig


class Recipe(Config):
    """Everything that shapes a translation system, from raw text to its scores."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]*$")
    """Name of the run: the run folder is runs/NAME unless --run-dir says otherwise."""
    seed: int = Field(1, ge=0)
    """Every random choice derives from it."""
    languages: LanguagesConfig
    data: DataConfig
    preprocess: PreprocessConfig = PreprocessConfig()
    bpe: SubwordConfig = SubwordConfig()
    model: ModelConfig = TransformerConfig()
    train: TrainConfig
    average: AverageConfig = AverageConfig()
    translate: SearchConfig = SearchConfig()
    score: ScoreConfig = ScoreConfig()

    @model_validator(mode="after")
    def _fits_together(self) -> Recipe:
        if self.model.tie_embeddings == "all" and not self.bpe.shared:
            raise ValueError('[model] tie_embeddings = "all" needs [bpe] shared = true; "target" works with separate ones')
        return self
