"""Open several model folders as one translator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nmt.checkpoint.layout import read_description, resolve
from nmt.checkpoint.load import load_translator
from nmt.errors import ModelError
from nmt.model.ensemble import Ensemble
from nmt.search.translate import Translator


def load_together(models: Sequence[Path | str], device: str = "auto", threads: int | None = None) -> Translator:
    """A translator that averages the models' probabilities; one model alone is itself.

    Settings of translating are the first model's, but the longest source is what all can take. Raises ModelError when
    the models' vocabularies, languages or cleaning differ.
    """
    first, *others = folders = [resolve(Path(model)) for model in models]
    if not others:
        return load_translator(first, device, threads)
    ours = read_description(first)
    for other in others:
        theirs = read_description(other)
        for name in ("vocabulary_sha256", "shared_vocabulary", "languages", "text", "context_sentences"):
            if getattr(ours, name) != getattr(theirs, name):
                part = name.split("_")[0] if name != "shared_vocabulary" else "vocabulary"
                raise ModelError(
                    f"{other}: has another {part} than {first}; an ensemble shares it",
                    "train the models of an ensemble from one recipe with several seeds",
                )
    loaded = [load_translator(folder, device, threads) for folder in folders]
    return Translator(
        Ensemble([translator.model for translator in loaded]).eval(),
        loaded[0].source_vocabulary,
        loaded[0].target_vocabulary,
        loaded[0].source_cleaner,
        loaded[0].target_cleaner,
        max_source_tokens=min(translator.max_source_tokens for translator in loaded),
        settings=loaded[0].settings,
        device=loaded[0].device,
        needs_tag=any(translator.tags.needed for translator in loaded),
        context_sentences=ours.context_sentences,
    )
