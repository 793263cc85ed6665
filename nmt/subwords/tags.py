"""Tags such as ``<2de>``: ids of their own behind all pieces, put before the ids of a sentence, never found in text.

They are control symbols of sentencepiece: text that spells a tag is encoded as any other text, and a tag decodes to
nothing. A subword model is a message of Google's protocol buffers whose pieces may be appended, so that a model that
gets tags has the bytes it had, and every piece keeps its number.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Sequence
from pathlib import Path

import numpy as np

from nmt.errors import RecipeError
from nmt.files import write_whole
from nmt.subwords.vocabulary import Vocabulary

_CONTROL = 3  # ModelProto.SentencePiece.Type


def add_tags(path: Path, tags: Sequence[str]) -> list[str]:
    """Append those of `tags` that the subword model `path` lacks, in order, and return them.

    Raises RecipeError for one that is a piece of text there, ModelError for a damaged file.
    """
    vocabulary = Vocabulary.load(path)
    missing = [tag for tag in dict.fromkeys(tags) if tag not in vocabulary.reserved]
    for tag in missing:
        if vocabulary.has(tag):
            raise RecipeError(f"{path}: {tag} is a piece of text there, so it can't be a tag", "choose another name")
    if missing:
        model = path.read_bytes() + b"".join(map(_piece, missing))
        Vocabulary(model, path)  # can be read
        with write_whole(path) as stream:
            stream.write(model)
    return missing


def tags_before(ids: Sequence[int] | np.ndarray, tags: Container[int]) -> int:
    """How many ids stand before a sentence: all up to the last that is one of `tags`, the reserved ids.

    That is its tag, or the separator behind its context (nmt/subwords/context.py).
    """
    return next((place for place in range(len(ids), 0, -1) if int(ids[place - 1]) in tags), 0)


def _piece(text: str) -> bytes:
    """Field 1 of ModelProto: a piece's text, its score and its type."""
    return _bytes(1, _bytes(1, text.encode()) + b"\x15" + struct.pack("<f", 0.0) + bytes([0x18, _CONTROL]))


def _bytes(field: int, value: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _number(len(value)) + value


def _number(value: int) -> bytes:
    """A number in groups of seven bits, the lowest first."""
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + _number(value >> 7)
