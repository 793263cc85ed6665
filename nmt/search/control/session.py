"""A conversation: lines to translate, and lines that begin with a colon and change how."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from nmt.corpus.lines import is_blank
from nmt.errors import NmtError
from nmt.events import Caution
from nmt.schema import nearest
from nmt.search.control.config import ControlConfig, check_settings
from nmt.search.control.request import Request
from nmt.search.formats import pharaoh
from nmt.search.translate import Translator

SPEED = frozenset({"batch_tokens", "batch_lines", "buffer_lines"})  # of no use to single lines
TEXTS = {
    "prefix": "how translations begin",
    "require": "a phrase that must stand in translations",
    "forbid": "a phrase that must not",
}
SWITCHES = {"scores": "show scores", "alignment": "show word alignments", "markup": "lines hold tags"}
WORDS = {"on": True, "off": False, "true": True, "false": False, "yes": True, "no": False}


class Session:
    """Settings that last from line to line. Raises NmtError for what cannot be done, and goes on."""

    def __init__(self, translator: Translator, common: Request, n_best: int = 1, **settings: Any) -> None:
        self.translator, self.start = translator, (common, n_best, dict(settings))
        self.reset()

    def reset(self) -> None:
        """Everything as at the beginning."""
        self.common, self.n_best, settings = self.start
        self.settings = {name: value for name, value in settings.items() if value is not None}
        self.switches = {name: False for name in SWITCHES} | {"markup": self.common.markup}
        self.lines = self.translator.context.lines()

    def translate(self, line: str) -> Iterator[str | Caution]:
        """A line's translations as they are shown, before them what they lack; nothing of a blank line.

        That begins a new document, where the model reads lines before a line.
        """
        request = self.lines.follow(replace(self.common, source=line, markup=self.switches["markup"]))
        if is_blank(line):
            return
        beam = self.settings.get("beam", self.translator.settings.beam)
        settings = self.settings if self.n_best <= beam else {**self.settings, "beam": self.n_best}
        alignment = self.switches["alignment"]
        (found,) = self.translator.stream([request], n_best=self.n_best, alignment=alignment, **settings)
        yield from (Caution(caution.partition(": ")[2]) for caution in found.cautions)
        for rank, candidate in enumerate(found.alternatives, 1):
            number = f"{rank:>2}  " if len(found.alternatives) > 1 else ""
            score = f"{candidate.score:8.4f}  " if number or self.switches["scores"] else ""
            yield number + score + candidate.text
            if alignment:
                yield " " * len(number + score) + pharaoh(candidate)

    def command(self, line: str) -> Iterator[str]:
        """Do what `line`, its colon taken off, says, and tell it."""
        typed, _, value = line.strip().partition(" ")
        name, value = typed.replace("-", "_").lower(), value.strip()
        if name in {"help", "h", "?"}:
            yield from self._help()
        elif name in {"settings", "set", ""}:
            yield from self._told()
        elif name == "reset":
            self.reset()
            yield from self._told()
        elif name in {"n_best", "nbest"}:
            self.n_best = self._count(value) if value else self.n_best
            yield f"n-best {self.n_best}"
        elif name in TEXTS:
            yield self._text(name, value)
        elif name in SWITCHES:
            self.switches[name] = self._truth(name, value) if value else not self.switches[name]
            yield f"{name} {'on' if self.switches[name] else 'off'}"
        else:
            yield self._setting(name, value, typed)

    def _count(self, value: str) -> int:
        if not value.isdecimal() or int(value) < 1:
            raise NmtError(f"n-best {value} is no number of translations", ":n-best 3 shows three")
        return int(value)

    def _truth(self, name: str, value: str) -> bool:
        if value.lower() not in WORDS:
            raise NmtError(f"{name} {value} is neither on nor off", f":{name} on")
        return WORDS[value.lower()]

    def _text(self, name: str, value: str) -> str:
        if name == "prefix":
            self.common = replace(self.common, prefix=value)
            return f"prefix {value!r}" if value else "no prefix"
        before = self.common.require if name == "require" else self.common.forbid
        phrases = (*before, value) if value else ()
        both = (phrases, self.common.forbid) if name == "require" else (self.common.require, phrases)
        self.common = replace(self.common, require=both[0], forbid=both[1])
        return f"{name} {', '.join(map(repr, phrases)) or 'nothing'}"

    def _setting(self, name: str, value: str, typed: str) -> str:
        known = [field for field in ControlConfig.model_fields if field not in SPEED]
        if name not in known:
            near = nearest(name, [*known, "n_best", *TEXTS, *SWITCHES, "settings", "reset", "help", "quit"])
            raise NmtError(f":{typed} is not known", f"did you mean :{near.replace('_', '-')}?" if near else ":help")
        if value in {"default", "-"}:
            self.settings.pop(name, None)
        elif value:
            base = self.translator.settings.model_dump()
            checked = check_settings({**base, **self.settings, name: value}, ":" + name.replace("_", "-"))
            self.settings[name] = getattr(checked, name)
        return self._shown(name)

    def _shown(self, name: str) -> str:
        whole = check_settings({**self.translator.settings.model_dump(), **self.settings}, "settings")
        value = getattr(whole, name)
        shown = {"True": "on", "False": "off", "None": "none"}.get(str(value), str(value))
        return f"{name.replace('_', '-')} {shown}"

    def _told(self) -> Iterator[str]:
        """What is not as the model has it, and the beam."""
        yield f"n-best {self.n_best}"
        for name in dict.fromkeys(["beam", "length_penalty", *self.settings]):
            if name not in SPEED:
                yield self._shown(name)
        for name in TEXTS:
            if value := getattr(self.common, name):
                yield f"{name} {value!r}" if isinstance(value, str) else f"{name} {', '.join(map(repr, value))}"
        yield from (f"{name} on" for name, on in self.switches.items() if on)

    def _help(self) -> Iterator[str]:
        yield "Type a line to translate it; a line that begins with a colon says how, :: is a colon of the text."
        yield "  :beam 8, :length-penalty none, :sample on, :max-length 30 …   any setting; default undoes it"
        yield "  :n-best 3                 show three, with their scores, from a beam at least as wide"
        yield from (f"  :{name + ' …':<24} {meaning}; alone it undoes that" for name, meaning in TEXTS.items())
        yield from (f"  :{name:<24} {meaning}, or no longer" for name, meaning in SWITCHES.items())
        yield "  :settings, :reset, :quit  tell them, as at the beginning, end (as Ctrl-D does)"
