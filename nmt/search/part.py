"""A line on its way, and the parts that are searched for."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace

from torch import Tensor

from nmt.search.control.config import ControlConfig, check_settings
from nmt.search.control.markup import Marked, take_out
from nmt.search.control.request import Request
from nmt.search.control.sample import Draw
from nmt.search.control.shortlist import Lexicon
from nmt.search.control.wishes import NO_WISHES, Wishes
from nmt.search.hypothesis import Hypothesis
from nmt.subwords.ngram import NgramModel


@dataclass
class Part:
    """Ids to be translated at one go, what is asked of them, and what was found. The first `lead` are no text."""

    ids: list[int]
    settings: ControlConfig
    least: int = 0
    """Least tokens of the translation."""
    most: int = 0
    """Most tokens of the translation."""
    room: int = sys.maxsize
    """Most tokens that the model has positions for and that a maximum asked for allows."""
    surfaces: tuple[str, ...] = ()
    """Its pieces as the source writes them, unknown ones too, where `settings.replace_unk` asks for them."""
    prefix: tuple[int, ...] = ()
    """The tokens that it begins with."""
    begins: str = ""
    """The text that it begins with."""
    wishes: Wishes = NO_WISHES
    """What its text must hold and must not hold."""
    lm: NgramModel | None = None
    """A language model that search shall listen to."""
    shortlist: Lexicon | None = None
    """What the tokens of `ids` may become; nothing else may be written."""
    required: tuple[tuple[int, ...], ...] = ()
    """Phrases that search shall put into it."""
    forbidden: tuple[tuple[int, ...], ...] = ()
    """Sequences that search shall keep out of it."""
    lead: int = 0
    hypotheses: list[Hypothesis] = field(default_factory=list)
    maps: list[Tensor] = field(default_factory=list)
    """Of the first hypotheses, where asked for, how much each token looks at each source token."""

    @property
    def text_ids(self) -> list[int]:
        """The ids that are text."""
        return self.ids[self.lead :]

    @property
    def chosen(self) -> bool:
        """Whether more than probability decides which hypotheses become translations, or how they are read."""
        return self.settings.coverage_penalty > 0 or self.settings.unique_text or self.settings.replace_unk

    def wanted(self, n_best: int) -> int:
        """How many hypotheses are looked for, of which the `n_best` best are then chosen."""
        return max(n_best, self.settings.beam) if self.chosen and not self.settings.sample else n_best

    @property
    def draw(self) -> Draw:
        """How to sample it: by its settings, with random numbers of its own."""
        seed = f"{self.settings.seed} {' '.join(map(str, self.ids))}"
        return Draw(seed, self.settings.temperature, self.settings.top_k, self.settings.top_p)


@dataclass
class Task:
    """A line and its parts: none where it is blank, several where it is too long for the model."""

    number: int
    request: Request
    ids: list[int] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)
    original: str = ""
    """The line as it was read, where that is more than the text to be translated."""
    marked: Marked | None = None
    """The text and the tags of a line with markup."""

    @classmethod
    def of(cls, number: int, request: Request) -> Task:
        """The task that `request` is; of a line with markup, to translate its text."""
        if not request.markup or not (marked := take_out(request.source)).markup:
            return cls(number, request, original=request.source)
        return cls(number, replace(request, source=marked.text), original=request.source, marked=marked)

    def caution(self, text: str) -> None:
        """Tell something about this line."""
        self.cautions.append(f"line {self.number + 1}: {text}")

    def own_settings(self, settings: ControlConfig) -> ControlConfig:
        """The settings, with what the line has for itself. Raises NmtError where they do not fit.

        Where a minimum and a maximum, one of them the line's own, contradict each other, the maximum holds.
        """
        if not self.request.settings:
            return settings
        place = f"line {self.number + 1}"
        own = check_settings(self.request.settings, place).model_dump(include=set(self.request.settings))
        both = {**settings.model_dump(), **own}
        for least, most in (("min_length", "max_length"), ("min_length_ratio", "max_length_ratio")):
            if (least in own) != (most in own) and both[most] is not None and both[least] > both[most]:
                told = f"{least} = {both[least]:g} is more than {most} = {both[most]:g}"
                self.caution(f"{told}: the maximum holds")
                both[least] = both[most]
        return check_settings(both, place)
