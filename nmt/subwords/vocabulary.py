"""Text → subword ids → text.

With byte fallback ``decode(encode(x)) == x`` for every string: spaces, special names such as ``<s>`` or ``<0x41>`` and
characters never seen in training included. Without it, characters outside the vocabulary become the unknown id, which
decodes to U+2047 (⁇), never to its name. User text never becomes pad, bos or eos.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import sentencepiece

from nmt.errors import ModelError
from nmt.subwords.escape import escape, unescape

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SEPARATOR = "<<context>>"
"""Stands behind each sentence of a source's context; no tag of a recipe may be named so."""


class Vocabulary:
    """A learned subword model and its special ids; ids run from 0 to ``len(vocabulary) - 1``."""

    pad, unk, bos, eos = PAD, UNK, BOS, EOS

    def __init__(self, model: bytes, path: Path) -> None:
        """`model` holds the bytes of a sentencepiece model; `path` is where they come from, for messages.

        Raises ModelError when they are not one, or one whose special ids lie elsewhere.
        """
        self.path = path
        self.sha256 = hashlib.sha256(model).hexdigest()
        self._pieces = _parse(model, path)

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """The vocabulary in the file `path`. Raises ModelError when it is missing or damaged."""
        try:
            return cls(path.read_bytes(), path)
        except OSError as error:
            raise ModelError(f"{path}: cannot be read: {error.strerror}", "learn it with nmt bpe RECIPE") from error

    def __len__(self) -> int:
        return self._pieces.get_piece_size()

    @cached_property
    def reserved(self) -> dict[str, int]:
        """The ids behind all pieces, which no text becomes: those of tags, and of the separator."""
        first = len(self)
        while first > EOS + 1 and self._pieces.is_control(first - 1):
            first -= 1
        return {self.piece(i): i for i in range(first, len(self))}

    @cached_property
    def tags(self) -> dict[str, int]:
        """The ids of tags such as ``<2de>`` (nmt/subwords/tags.py)."""
        return {tag: i for tag, i in self.reserved.items() if tag != SEPARATOR}

    @property
    def separator(self) -> int | None:
        """The id behind each sentence of a source's context (nmt/subwords/context.py), where there is one."""
        return self.reserved.get(SEPARATOR)

    def has(self, piece: str) -> bool:
        """Whether `piece` is one of the vocabulary, be it text or a special name."""
        return self._pieces.piece_to_id(piece) != self.unk or piece == self.piece(self.unk)

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, without begin and end marks. Empty text has none."""
        return self._pieces.encode(escape(text))

    def encode_many(self, texts: Iterable[str], threads: int = -1) -> list[list[int]]:
        """What `encode` gives for each text, on `threads` threads (-1: one for each processor)."""
        escaped = [escape(text) for text in texts]
        return self._pieces.encode(escaped, num_threads=threads) if escaped else []

    def decode(self, ids: Sequence[int]) -> str:
        """The text of any ids. Special ids show nothing, unknown ones U+2047, bytes that are not UTF-8 U+FFFD."""
        return unescape(self._pieces.decode([int(i) for i in ids]))

    def pieces(self, text: str) -> list[str]:
        """The pieces of `text` as strings; a space is U+2581. No piece holds a space or ends a line."""
        return self._pieces.encode(escape(text), out_type=str)

    def decode_pieces(self, pieces: Sequence[str]) -> str:
        """The text of pieces as strings; one that is not in the vocabulary stands for itself."""
        return unescape(self._pieces.decode(list(pieces))) if pieces else ""

    def piece(self, id: int) -> str:
        """The piece with the number `id`; the special ones are ``<pad>``, ``<unk>``, ``<s>`` and ``</s>``."""
        return self._pieces.id_to_piece(int(id))

    def names(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The pieces with these numbers, many times faster than asked for one by one."""
        return tuple(map(self._names.__getitem__, ids))

    @cached_property
    def _names(self) -> list[str]:
        return [self.piece(i) for i in range(len(self))]


def _parse(model: bytes, path: Path) -> sentencepiece.SentencePieceProcessor:
    hint = "copy it again from where it was made, or learn it again with nmt bpe RECIPE"
    if not model:  # sentencepiece would complain on stderr, and take it
        raise ModelError(f"{path}: is empty; a subword model is expected", hint)
    try:
        pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    except RuntimeError as error:
        raise ModelError(f"{path}: is damaged, or no subword model", hint) from error
    found = pieces.pad_id(), pieces.unk_id(), pieces.bos_id(), pieces.eos_id()
    if found != (PAD, UNK, BOS, EOS):
        raise ModelError(f"{path}: has pad, unk, bos, eos = {found}, not (0, 1, 2, 3), or is damaged", hint)
    return pieces
