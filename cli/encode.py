"""nmt encode: raw text → subword pieces, as a model sees them."""

from __future__ import annotations

from collections import Counter
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
    from nmt.corpus.lines import is_blank, open_lines, read_lines

    vocabulary, cleaner = load_side(model, side)
    tally: Counter[str] = Counter()
    with open_lines(output) as out:
        for line in read_lines(input_, on_bad_bytes, tally):
            text = "" if is_blank(line) else cleaner.clean(line)
            numbers = vocabulary.encode(text)
            tally["pieces"] += len(numbers)
            tally["unknown"] += numbers.count(vocabulary.unk)
            out.write(" ".join(map(str, numbers) if ids else vocabulary.pieces(text)))
            out.flush()
    tell_bad_bytes(tally)
    if tally["unknown"]:
        show.caution(f"{tally['unknown']:,} of {tally['pieces']:,} pieces are unknown to the {side} vocabulary")


def load_side(model: Path, side: str) -> tuple[Vocabulary, Cleaner]:
    """One side's vocabulary and cleaner, read from the folder that MODEL means."""
    from nmt.checkpoint import layout
    from nmt.errors import ModelError
    from nmt.subwords.vocabulary import Vocabulary

    folder = layout.resolve(model)
    description = layout.read_description(folder)
    source = side == "source"
    path = description.source_vocabulary(folder) if source else description.target_vocabulary(folder)
    vocabulary = Vocabulary.load(path)
    if description.vocabulary_sha256.get(path.name) != vocabulary.sha256:
        raise ModelError(f"{path}: is not the file {layout.DESCRIPTION} names by its digest", "copy the folder again")
    truecase = folder / (layout.SOURCE_TRUECASE if source else layout.TARGET_TRUECASE)
    language = description.languages.source if source else description.languages.target
    return vocabulary, description.text.build(language, truecase if truecase.is_file() else None)


def tell_bad_bytes(tally: Counter[str]) -> None:
    """Say how many bytes were replaced, if any."""
    if tally["bad bytes"]:
        show.caution(f"{tally['bad bytes']:,} bytes were not valid UTF-8; U+FFFD stands in their place")
