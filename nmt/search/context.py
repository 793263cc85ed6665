"""The lines before each line, for models that read them with it (nmt/subwords/context.py)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import TypeVar

from nmt.corpus.clean import Cleaner
from nmt.corpus.document import Document
from nmt.corpus.lines import is_blank
from nmt.errors import SettingsError
from nmt.search.control.markup import plain
from nmt.search.control.request import Request
from nmt.subwords.context import context_ids
from nmt.subwords.vocabulary import Vocabulary

R = TypeVar("R", Request, Request | None)


class Lines:
    """Lines in the order of their documents: each gets those before it for its context, unless it brings its own.

    A blank line ends a document, also in what a line brings, which stands in place of all lines before it, for later
    lines too. Raises TypeError where that is a single string.
    """

    def __init__(self, sentences: int) -> None:
        self._sentences, self._document = sentences, Document(sentences)

    def follow(self, request: R) -> R:
        """`request` with its context; the next one has its line before it."""
        if not self._sentences or not isinstance(request, Request):
            return request
        if isinstance(request.context, str):
            raise TypeError('context is one str, not a list of sentences: context=["..."]')
        if request.context is not None:
            self._document.begin()
            for sentence in request.context:
                self._read(sentence)
        before = () if is_blank(request.source) else self._document.before
        self._read(request.source)
        return replace(request, context=before)

    def _read(self, line: str) -> None:
        if is_blank(line):
            self._document.begin()
        else:
            self._document.say(line)


@dataclass(frozen=True)
class Context:
    """How a model reads the sentences before a source: so many, each cleaned and encoded as a source is."""

    sentences: int
    vocabulary: Vocabulary
    cleaner: Cleaner

    def lines(self) -> Lines:
        """Lines yet to be followed, at the beginning of a document."""
        return Lines(self.sentences)

    def encoded(self, requests: Sequence[Request]) -> Iterable[list[list[int]]]:
        """For each request the ids of the sentences before it, oldest first. Raises SettingsError."""
        if not self.sentences:
            self._refuse(requests)
            return repeat([])
        told = [self._texts(request) for request in requests]
        ids = iter(self.vocabulary.encode_many([text for texts in told for text in texts]))
        return [[next(ids) for _ in texts] for texts in told]

    def lead(self, before: Sequence[list[int]], room: int) -> list[int]:
        """The ids, at most `room`, that stand before a sentence with these before it."""
        separator = self.vocabulary.separator
        return context_ids(before, separator, room) if before and separator is not None else []

    def led(
        self, requests: Sequence[Request], ids: Sequence[list[int]], tags: Sequence[list[int]], most: int
    ) -> list[list[int]]:
        """The `ids` of the sources, before each its tag and what it has for context.

        With context there are at most `most`, unless there are more without any.
        """
        found = zip(tags, self.encoded(requests), ids, strict=False)
        return [[*tag, *self.lead(before, most - len(tag) - len(own)), *own] for tag, before, own in found]

    def followed(self, sources: Iterable[str | Request]) -> list[Request]:
        """Lines from the beginning of a document on, each with those before it or those it brings."""
        lines = self.lines()
        return [lines.follow(Request(source) if isinstance(source, str) else source) for source in sources]

    def _texts(self, request: Request) -> list[str]:
        texts = [plain(text) if request.markup else text for text in request.context or ()]
        return [self.cleaner.clean(text) for text in texts]

    def _refuse(self, requests: Sequence[Request]) -> None:
        if any(request.context for request in requests):
            raise SettingsError(
                "this model reads no context: it was trained on single sentences", "leave out the context"
            )
