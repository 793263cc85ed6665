"""Documents read line by line: what was said before each sentence."""

from __future__ import annotations

from collections import deque

from nmt.corpus.lines import LineWriter


class Document:
    """The last `sentences` of a document, as it is read."""

    def __init__(self, sentences: int) -> None:
        self._before: deque[str] = deque(maxlen=sentences)

    @property
    def before(self) -> tuple[str, ...]:
        """The last sentences, oldest first; none where the document begins."""
        return tuple(self._before)

    def begin(self) -> None:
        """Another document begins."""
        self._before.clear()

    def say(self, sentence: str) -> None:
        """What follows has `sentence` before it."""
        self._before.append(sentence)


class ContextWriter:
    """Writes `sentences` lines for each pair that is kept: what was said before it, blank where there is no more."""

    def __init__(self, out: LineWriter, sentences: int) -> None:
        self._out, self._sentences = out, sentences
        self._document = Document(sentences)

    def begin(self) -> None:
        """Another corpus, or document, begins."""
        self._document.begin()

    def write(self) -> None:
        """The context of the pair that comes next, the oldest sentence first."""
        before = self._document.before
        for line in ("",) * (self._sentences - len(before)) + before:
            self._out.write(line)

    def say(self, sentence: str | None) -> None:
        """What pairs after this one have before them; nothing new of an empty one, nothing at all after None."""
        if sentence is None:
            self._document.begin()
        elif sentence:
            self._document.say(sentence)
