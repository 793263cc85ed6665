"""A line with what is asked of its translation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nmt.errors import DataError
from nmt.schema import nearest
from nmt.search.control.config import PER_LINE, check_settings
from nmt.search.control.glossary import Glossary
from nmt.search.control.protect import Protector
from nmt.search.control.shortlist import Lexicon
from nmt.search.control.wishes import Wishes
from nmt.subwords.ngram import NgramModel


@dataclass(frozen=True)
class Request:
    """A line to translate. Whatever is not asked for changes nothing."""

    source: str
    prefix: str = ""
    """The text that the translation shall begin with; white space at its end doesn't count."""
    require: tuple[str, ...] = ()
    """Phrases that must stand in the translation, as whole words, each as often as it is named here."""
    forbid: tuple[str, ...] = ()
    """Phrases that must not stand in the translation as whole words."""
    glossary: Glossary | None = None
    """Terms that must be translated in one way."""
    protector: Protector | None = None
    """What must stand in the translation exactly as often as in the source."""
    lm: NgramModel | None = None
    """A language model of the target, which weighs `lm_weight`."""
    shortlist: Lexicon | None = None
    """The target pieces that may stand in the translation are those which translate its source pieces."""
    markup: bool = False
    """The line holds tags and entities of XML or HTML: text is translated, and tags are carried over."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The line's own values of what `PER_LINE` names."""
    tag: str = ""
    """The tag before the source, such as ``<2de>``, of a model that was trained with tags; empty is that of all."""
    context: tuple[str, ...] | None = None
    """The sentences before the source, oldest first, of a model that reads them; None: the lines before it."""

    def wishes(self, source: str, first: bool = True) -> Wishes:
        """What is asked of the translation of `source`, which is the line or a part of it, perhaps the first."""
        terms = self.glossary.wanted(source) if self.glossary else []
        required = [*self.require, *(term for term in terms if term not in self.require)] if first else terms
        return Wishes(tuple(required), self.forbid, source, self.protector)


def read_request(source: str, control: Any, place: str) -> Request:
    """The request that a jsonl line's object `control` makes: what `Request` holds, and settings, by their names.

    What is null is not asked for. Raises DataError, which names `place`, for an unknown name or a value of another
    kind, SettingsError for settings that don't fit.
    """
    if control is None:
        return Request(source)
    if not isinstance(control, dict):
        raise DataError(f"{place}: control is not an object", 'write {"source": "...", "control": {"min_length": 5}}')
    readers: dict[str, Callable[[Any, str], Any]] = {
        "prefix": _text,
        "require": _texts,
        "forbid": _texts,
        "tag": _text,
        "to": _text,
        "markup": _truth,
    }
    known: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for name, value in control.items():
        if name in PER_LINE:
            settings |= {name: value} if value is not None else {}
        elif name in readers:
            known |= {name: readers[name](value, f"{place}: control: {name}")} if value is not None else {}
        else:
            names = sorted({*PER_LINE, *readers})
            hint = nearest(name, names)
            raise DataError(
                f"{place}: control: {name} is not a known key",
                f"did you mean {hint}?" if hint else f"the keys are {', '.join(names)}",
            )
    check_settings(settings, f"{place}: control")
    if language := known.pop("to", ""):
        known["tag"] = tag_of(language)
    return Request(source, settings=settings, **known)


def read_context(value: Any, place: str) -> tuple[str, ...] | None:
    """What a jsonl line's field `context` says. Raises DataError, which names `place`, for what is no list of texts."""
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise DataError(f"{place}: context is not a list of texts", 'write "context": ["..."], or [] for none')
    return tuple(value)


def tag_of(language: str) -> str:
    """The tag that asks for a language: ``<2de>`` (Johnson et al. 2017)."""
    return f"<2{language}>"


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise DataError(f"{place} is not a text", 'write "..."')
    return value


def _texts(value: Any, place: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        raise DataError(f"{place} is not a list of texts", 'write ["...", "..."]')
    return tuple(_text(item, place).strip() for item in value)


def _truth(value: Any, place: str) -> bool:
    if not isinstance(value, bool):
        raise DataError(f"{place} is neither true nor false", "write true")
    return value
