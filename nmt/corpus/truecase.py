"""True case as Moses has it: words as they are written inside sentences, also at a sentence's start."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from nmt.corpus.lines import read_lines
from nmt.errors import DataError, ModelError
from nmt.files import write_text_whole

_ENDS = frozenset(".:?!")
_BEFORE_START = frozenset(("(", "[", '"', "'", "&apos;", "&quot;", "&#91;", "&#93;"))
_MODEL_LINE = re.compile(r"(\S+) \((\d+)/(\d+)\)((?: \S+ \(\d+\))*)")


class Truecaser:
    """The commonest form of each word, and the other forms that were seen.

    `forms`: for each word in small letters, its forms and how often each was seen inside a sentence.
    """

    def __init__(self, forms: dict[str, Counter[str]]) -> None:
        ordered = {word: sorted(seen.items(), key=lambda one: (-one[1], one[0])) for word, seen in forms.items()}
        self._forms = dict(sorted(ordered.items()))
        self._best = {word: seen[0][0] for word, seen in self._forms.items()}
        self._known = frozenset(form for seen in self._forms.values() for form, _ in seen)

    @classmethod
    def learn(cls, lines: Iterable[str]) -> Truecaser:
        """Count the forms in tokenised lines, but for each sentence's first word, whose capital says nothing."""
        forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for line in lines:
            for token, first in _with_starts(line.split()):
                if not first and token.lower() != token.upper():
                    forms[token.lower()][token] += 1
        return cls(forms)

    @classmethod
    def load(cls, path: Path) -> Truecaser:
        """A model that `save` wrote. Raises ModelError when it is missing or damaged."""
        forms: dict[str, Counter[str]] = {}
        try:
            for number, line in enumerate(read_lines(path), 1):
                match = _MODEL_LINE.fullmatch(line)
                if match is None:
                    raise ModelError(f"{path}:{number}: is damaged: {line[:40]!r} is no line of a truecase model")
                rest = match[4].split()
                forms[match[1].lower()] = Counter({match[1]: int(match[2])})
                forms[match[1].lower()].update({rest[i]: int(rest[i + 1].strip("()")) for i in range(0, len(rest), 2)})
        except DataError as error:
            raise ModelError(error.problem, "copy the model folder as a whole") from error
        return cls(forms)

    def save(self, path: Path) -> None:
        """Write the model as Moses' train-truecaser does: ``the (90/100) The (10)``. Raises OutputError."""
        lines = []
        for seen in self._forms.values():
            (best, count), *others = seen
            total = sum(number for _, number in seen)
            lines.append(f"{best} ({count}/{total})" + "".join(f" {form} ({number})" for form, number in others))
        write_text_whole(path, "".join(line + "\n" for line in lines))

    def apply(self, line: str) -> str:
        """The tokenised `line` in true case. Inside a sentence, forms that were seen in training stay as they are."""
        return " ".join(self._case(token, first) for token, first in _with_starts(line.split(" ")))

    def _case(self, token: str, first: bool) -> str:
        return token if not first and token in self._known else self._best.get(token.lower(), token)


def capitalize(line: str) -> str:
    """The tokenised `line` with a capital at the start of each sentence."""
    return " ".join(token[:1].upper() + token[1:] if first else token for token, first in _with_starts(line.split(" ")))


def _with_starts(tokens: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Each token, and whether it starts a sentence; brackets and quotes before a start don't use it up."""
    first = True
    for token in tokens:
        yield token, first
        if token in _ENDS:
            first = True
        elif token and token not in _BEFORE_START:
            first = False
