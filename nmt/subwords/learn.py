"""Subwords learned from clean text with sentencepiece: BPE (Sennrich et al. 2016) or unigram (Kudo 2018)."""

from __future__ import annotations

import io
import re
import threading
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece

from nmt.corpus.lines import is_blank, read_lines
from nmt.errors import DataError, NmtError, RecipeError
from nmt.events import Caution, Event, Notice, Progress
from nmt.files import write_whole
from nmt.subwords.escape import escape
from nmt.subwords.tags import add_tags
from nmt.subwords.vocabulary import BOS, EOS, PAD, UNK, Vocabulary
from nmt.wording import counted

_MOST_CHARACTERS = 10_000  # longer lines are learned from in parts: sentencepiece counts positions in 16 bits
_THREADS = 8  # always as many: the unigram model's sums, and so its file, depend on how they are shared out
_ALWAYS: dict[str, Any] = {
    "hard_vocab_limit": False,  # a small text gives fewer pieces instead of an error
    "required_chars": "\u2581",  # the space, however rare: a text's beginning is known by it
    "pad_id": PAD,
    "unk_id": UNK,
    "bos_id": BOS,
    "eos_id": EOS,
    "unk_surface": "\u2047",
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
    "max_sentence_length": 8 * _MOST_CHARACTERS,  # in bytes; an escaped character has up to eight
    "num_threads": _THREADS,
    "minloglevel": 3,
}
_SPECIAL = re.compile(r"<(?=(?:s|/s|unk|pad|0x[0-9A-F]{2})>)")


def learn(
    texts: Sequence[Path],
    output: Path,
    *,
    kind: str,
    size: int,
    byte_fallback: bool,
    split_digits: bool,
    character_coverage: float,
    sentences: int,
    seed: int,
    tags: Sequence[str] = (),
) -> Iterator[Event]:
    """Learn `size` pieces from the lines of `texts` together and write the model file `output`, whole.

    The same text and settings give the same bytes, in any folder and on any machine. No line is left out for its
    length. Of more than `sentences` non-blank lines, so many are drawn evenly by `seed`, and a Caution says so.
    `tags` are counted in `size`; text that spells one is learned from without making a piece of it.
    Raises DataError when there is no text, RecipeError when `size` cannot hold even the characters.
    """
    total = sum(not is_blank(line) for line in _lines(texts))
    names = ", ".join(str(path) for path in texts)
    if total == 0:
        raise DataError(f"{names}: hold no text to learn subwords from", "check what preprocessing kept")
    if total > sentences:
        yield Caution(f"subwords are learned from {sentences:,} of {total:,} lines, drawn evenly ([bpe] sentences)")
    used = min(total, sentences)
    learning = _Learning(
        _sentences(texts, _drawn(total, sentences, seed), tags),
        model_type=kind,
        vocab_size=size - len(tags),
        byte_fallback=byte_fallback,
        split_digits=split_digits,
        character_coverage=character_coverage,
    )
    yield from learning.watch(used)
    if isinstance(learning.error, RuntimeError):
        raise _explain(str(learning.error), names, size, len(tags)) from learning.error
    if learning.error:
        raise learning.error
    model = learning.model.getvalue()
    output.parent.mkdir(parents=True, exist_ok=True)
    with write_whole(output) as stream:
        stream.write(model)
    add_tags(output, tags)
    vocabulary = Vocabulary.load(output)
    if len(vocabulary) < size:
        found = counted(len(vocabulary), "piece")
        yield Caution(f"the text gave {found}, fewer than [bpe] size = {size:,}; all are used")
    yield Notice(f"learned {len(vocabulary):,} {kind} pieces from {counted(used, 'line')}: {output}")


class _Learning(threading.Thread):
    """Sentencepiece at work, on a thread of its own: it hears no Ctrl-C, and may run for many minutes."""

    def __init__(self, sentences: Iterator[str], **settings: Any) -> None:
        super().__init__(daemon=True)
        self.model = io.BytesIO()
        self.error: BaseException | None = None
        self._sentences = sentences
        self._settings = settings
        self._read = 0
        self._stopped = False

    def run(self) -> None:
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=self._feed(),
                model_writer=self.model,
                **self._settings,
                **_ALWAYS,
            )
        except BaseException as error:  # raised again where the thread was started
            self.error = error

    def watch(self, total: int) -> Iterator[Event]:
        """Start, and tell how many lines have been read until all is done; whoever leaves early stops the work."""
        self.start()
        try:
            while self.is_alive():
                yield Progress("learn subwords", min(self._read, total), total, "lines")
                self.join(0.2)
        finally:
            self._stopped = True
            self.join(1.0)
        yield Progress("learn subwords", total, total, "lines")

    def _feed(self) -> Iterator[str]:
        for sentence in self._sentences:
            if self._stopped:
                return
            yield sentence
            self._read += 1


def _lines(texts: Sequence[Path]) -> Iterator[str]:
    for path in texts:
        yield from read_lines(path)


def _drawn(total: int, sentences: int, seed: int) -> np.ndarray:
    """Which of `total` lines are learned from: a boolean each, `sentences` of them true at most."""
    if total <= sentences:
        return np.ones(total, dtype=bool)
    generator = np.random.default_rng([seed, zlib.crc32(b"subwords")])
    drawn = np.zeros(total, dtype=bool)
    drawn[generator.choice(total, sentences, replace=False, shuffle=False)] = True
    return drawn


def _sentences(texts: Sequence[Path], drawn: np.ndarray, tags: Sequence[str] = ()) -> Iterator[str]:
    """The drawn non-blank lines, escaped, in parts that sentencepiece takes whole."""
    names = "|".join(re.escape(tag[1:]) for tag in tags)
    special = re.compile(f"{_SPECIAL.pattern}|<(?={names})") if tags else _SPECIAL
    lines = (line for line in _lines(texts) if not is_blank(line))
    for line, is_drawn in zip(lines, drawn, strict=True):
        if is_drawn:
            for part in _parts(line):
                # Inside a special name sentencepiece would not count characters; between its halves it does.
                yield from special.sub("<\n", escape(part)).split("\n")


def _parts(line: str) -> Iterator[str]:
    """`line` cut at spaces, or where there is none, into parts of at most _MOST_CHARACTERS."""
    while len(line) > _MOST_CHARACTERS:
        space = line.rfind(" ", 1, _MOST_CHARACTERS)
        cut = space if space > 0 else _MOST_CHARACTERS
        yield line[:cut]
        line = line[cut + (space > 0) :]
    yield line


def _explain(message: str, names: str, size: int, tags: int) -> NmtError:
    """Sentencepiece's refusal in this toolkit's words."""
    if match := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        needed = int(match[1]) + tags
        problem = f"[bpe] size = {size} is smaller than the {needed} pieces that characters, bytes and marks need"
        return RecipeError(problem, f"raise [bpe] size to at least {needed}, or lower character_coverage")
    if "sentences_.empty()" in message:
        return DataError(f"{names}: hold no text to learn subwords from", "check what preprocessing kept")
    return DataError(f"{names}: subwords cannot be learned: {message}", "check the text, or change [bpe] size or kind")
