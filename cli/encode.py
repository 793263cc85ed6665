"""nmt encode: raw text → subword pieces, as a model sees them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from . import show
from .options import Input, ModelFolder, OnBadBytes, Output, Quiet

if TYPE_CHECKING:
    from nmt.corpus.clean import Cleaner
    from nmt.subwords.vocabulary import Vocabulary

Side = Annotated[Literal["source", "target"], typer.Option("--side", help="Whose vocabulary and cleaning to use.")]
Ids = Annotated[bool, typer.Option("--ids", help="Numbers in place of pieces.")]


def encode(
    model: ModelFolder,
    input_: Input = "-",
    output: Output = "-",
    side: Side = "source",
    ids: Ids = False,
    on_bad_bytes: OnBadBytes = "error",
    quiet: Quiet = False,
) -> None:
    """Turn raw text into the subword pieces that MODEL sees.

    Reads one sentence a line and writes its pieces with spaces between them, without begin and end marks. A blank line
    gives an empty one. Cleaning is that of the model's recipe.

    Example: nmt encode runs/sample < test.en > test.pieces
    """
    from nmt.subwords.files import encode_file

    vocabulary, cleaner = load_side(model, side)
    show.awaits(input_)
    events = encode_file(vocabulary, cleaner, input_, output, ids=ids, on_bad_bytes=on_bad_bytes)
    show.progress(events, results=output)


def load_side(model: Path, side: str) -> tuple[Vocabulary, Cleaner]:
    """One side's vocabulary and cleaner, read from the folder that MODEL means."""
    from nmt.checkpoint import layout
    from nmt.errors import ModelError
    from nmt.files import sha256
    from nmt.subwords.vocabulary import Vocabulary

    folder = layout.resolve(model)
    description = layout.read_description(folder)
    source = side == "source"
    name = description.source_vocabulary if source else description.target_vocabulary
    truecase = layout.SOURCE_TRUECASE if source else layout.TARGET_TRUECASE
    for file in (name, truecase):
        digest = description.vocabulary_sha256.get(file)
        if digest and sha256(folder / file) != digest:
            problem = (
                f"{folder / file}: is not the file this model was trained with (its sha256 differs from model.json)"
            )
            raise ModelError(problem, "copy the file that lay beside these weights")
    language = description.languages.source if source else description.languages.target
    truecase_model = folder / truecase if truecase in description.vocabulary_sha256 else None
    return Vocabulary.load(folder / name), description.text.build(language, truecase_model)
