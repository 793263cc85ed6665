"""Raw text in, raw text out: the one way to translate, whether asked by a command, by Python or by validation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from nmt.corpus.clean import Cleaner
from nmt.corpus.lines import is_blank, one_line
from nmt.errors import SettingsError
from nmt.model.position.learned import Learned
from nmt.model.seq2seq import Seq2Seq
from nmt.search.config import SearchConfig
from nmt.search.context import Context
from nmt.search.control.choose import Choice
from nmt.search.control.config import ControlConfig, check_settings
from nmt.search.control.insist import Insistence
from nmt.search.control.length import bounds, maximum
from nmt.search.control.request import Request
from nmt.search.control.unknown import give_surfaces
from nmt.search.feed import chunks
from nmt.search.length import Penalty, parse_penalty
from nmt.search.look import look
from nmt.search.part import Part, Task
from nmt.search.rescore import rescored
from nmt.search.solve import Solver
from nmt.search.split import split_long
from nmt.search.tags import Tags, tagged
from nmt.search.translation import Candidate, Translation
from nmt.search.written import Written
from nmt.subwords.vocabulary import Vocabulary


class Translator:
    """A model with everything needed to translate raw text. What it gives depends on model, line and settings only.

    `max_source_tokens` counts the end mark; longer lines are split and rejoined. `settings` are the defaults that
    every method's keyword arguments of the same names override (beam, length_penalty, max_extra_tokens, …); what else
    they may set stands in ControlConfig. `needs_tag`: no line can do without one of the source vocabulary's tags.
    `context_sentences`: so many lines before each line are read with it; a blank line begins a new document.
    """

    def __init__(
        self,
        model: Seq2Seq,
        source_vocabulary: Vocabulary,
        target_vocabulary: Vocabulary,
        source_cleaner: Cleaner,
        target_cleaner: Cleaner,
        *,
        max_source_tokens: int,
        settings: SearchConfig | None = None,
        device: torch.device | str = "cpu",
        needs_tag: bool = False,
        context_sentences: int = 0,
    ) -> None:
        self.model = model.to(device)
        self.source_vocabulary, self.target_vocabulary = source_vocabulary, target_vocabulary
        self.source_cleaner, self.target_cleaner = source_cleaner, target_cleaner
        self.max_source_tokens = max_source_tokens
        self.settings = settings or SearchConfig()
        self.device = torch.device(device)
        self.tags = Tags(source_vocabulary, needs_tag)
        self.context = Context(context_sentences, source_vocabulary, source_cleaner)
        tables = [module.weight.size(0) for module in model.modules() if isinstance(module, Learned)]
        self.positions = min(tables, default=None)
        self.solver = Solver(self.model, source_vocabulary, target_vocabulary, self.device)
        self.written = Written(source_vocabulary, target_vocabulary, target_cleaner)

    def translate(self, lines: Iterable[str | Request], *, tag: str = "", **overrides: Any) -> list[str]:
        """The best translation of every line, as a list of texts: ``translate(["A man.", "Two dogs."], beam=1)``.

        Settings that may be overridden are those of a recipe's [translate] (beam, length_penalty, max_extra_tokens,
        max_source_tokens, batch_tokens, batch_lines, buffer_lines, precision) and those of ControlConfig. `tag` is put
        before every line that has none of its own, such as ``<2de>``. Raises
        TypeError for a single string or lines that aren't strings, NmtError for settings that do not fit.
        """
        if not isinstance(lines, str | bytes):
            lines = (_no_pause(line) for line in lines)
        return [translation.text for translation in self.stream(lines, tag=tag, **overrides)]

    def stream(
        self,
        lines: Iterable[str | Request | None],
        *,
        n_best: int = 1,
        alignment: bool = False,
        tag: str = "",
        first: int = 0,
        **overrides: Any,
    ) -> Iterator[Translation]:
        """A translation for every line, in order, as soon as `buffer_lines` lines are read or the input pauses.

        None among the lines says that the input pauses (see feed.live): what was read is then translated at once.
        `alignment` tells for every word of a translation which source word it comes from (see align.py); `first` is
        the number of the first line.
        Blank lines give empty text without asking the model. A Request asks for more than a line alone; `tag` is
        for lines without one. Raises NmtError for settings that do not fit, and for a tag that is missing or unknown.
        """
        found = self.underway(lines, n_best=n_best, alignment=alignment, tag=tag, first=first, **overrides)
        return (one for one in found if isinstance(one, Translation))

    def underway(
        self,
        lines: Iterable[str | Request | None],
        *,
        n_best: int = 1,
        alignment: bool = False,
        tag: str = "",
        first: int = 0,
        **overrides: Any,
    ) -> Iterator[Translation | int]:
        """What `stream` gives, and now and then, before it, how many lines have been searched for."""
        if isinstance(lines, str | bytes):
            raise TypeError(f"lines is one {type(lines).__name__}, not a list of lines: translate([text])")
        settings = self._settings(overrides)
        if not 1 <= n_best <= settings.beam and not (settings.sample and n_best > 0):
            raise SettingsError(
                f"n_best = {n_best} is more than beam = {settings.beam}, which keeps no more hypotheses than that",
                f"use a beam of {n_best}",
            )
        requests: Iterable[Request | None] = (Request(line) if isinstance(line, str) else line for line in lines)
        if tag:
            requests = (tagged(request, tag) for request in requests)
        if self.context.sentences:
            requests = map(self.context.lines().follow, requests)
        return self._underway(requests, n_best, alignment, settings, parse_penalty(settings.length_penalty), first)

    def _underway(
        self,
        requests: Iterable[Request | None],
        n_best: int,
        alignment: bool,
        settings: ControlConfig,
        penalty: Penalty,
        number: int,
    ) -> Iterator[Translation | int]:
        for chunk in chunks(requests, settings.buffer_lines):
            tasks = self._tasks(chunk, number, settings)
            parts = [part for task in tasks for part in task.parts]
            for solved in self._solve(parts, n_best, settings, penalty):
                yield number + len(chunk) * solved // len(parts)
            looking = [part for task in tasks if alignment or task.marked for part in task.parts]
            if looking:
                with self._inference(settings.precision):
                    look(self.solver, looking, n_best, settings)
            for task in tasks:
                yield self.written.translation(task, n_best, penalty)
            number += len(chunk)

    def rescore(
        self, sources: Iterable[str | Request], targets: Iterable[str], *, tag: str = "", **overrides: Any
    ) -> list[Candidate]:
        """The model's own scores of given translations, end mark counted: search's numbers for the same tokens.

        A pair of two blank lines scores 0, as translating a blank line does. `finished` is False where a side has more
        tokens than the model has positions and only its beginning counts. Of a Request, source, tag and context count;
        with context, sources follow each other as lines do in `stream`. Raises ValueError when the counts differ.
        """
        sources, targets = list(sources), list(targets)
        if len(sources) != len(targets):
            raise ValueError(f"{len(sources):,} sources, {len(targets):,} targets: each has its own")
        return list(self.rescore_stream(zip(sources, targets, strict=True), tag=tag, **overrides))

    def rescore_stream(
        self, pairs: Iterable[tuple[str | Request, str] | None], *, tag: str = "", **overrides: Any
    ) -> Iterator[Candidate]:
        """What `rescore` gives, in order, `buffer_lines` pairs at a time; None hands on what has come so far."""
        settings = self._settings(overrides)
        lines = self.context.lines()
        for chunk in chunks(pairs, settings.buffer_lines):
            requests = [lines.follow(Request(one) if isinstance(one, str) else one) for one, _ in chunk]
            leads = [self.tags.lead(request.tag or tag) for request in requests]
            texts = [target for _, target in chunk]
            with self._inference(settings.precision):
                found = rescored(self, requests, leads, texts, settings, parse_penalty(settings.length_penalty))
            yield from found

    def _settings(self, overrides: Mapping[str, Any]) -> ControlConfig:
        given = {name: value for name, value in overrides.items() if value is not None}
        settings = check_settings({**self.settings.model_dump(), **given}, "translate")
        longest = given.get("max_source_tokens") or self.max_source_tokens
        return settings.model_copy(update={"max_source_tokens": min(longest, self.positions or longest)})

    def _tasks(self, requests: Sequence[Request], first: int, settings: ControlConfig) -> list[Task]:
        """What is to be done for each line: nothing, one search, or one for each part."""
        if strange := next((request for request in requests if not isinstance(request, Request)), None):
            raise TypeError(f"a line is a string; {strange!r} is {type(strange).__name__}")
        tasks = [Task.of(first + i, request) for i, request in enumerate(requests)]
        asked = [task for task in tasks if not is_blank(task.request.source)]
        texts = [self.source_cleaner.clean(_without_end(task.request.source)) for task in asked]
        most = (settings.max_source_tokens or self.max_source_tokens) - 1
        befores = self.context.encoded([task.request for task in asked])
        encoded = zip(asked, texts, self.source_vocabulary.encode_many(texts), strict=True)
        for (task, text, ids), before in zip(encoded, befores, strict=False):
            task.ids = ids
            own, lead = task.own_settings(settings), self.tags.lead(task.request.tag, f"line {task.number + 1}: ")
            limit = max(most - len(lead), 1)
            parts = [ids] if len(ids) <= limit else split_long(text, limit, self.source_vocabulary.encode_many)
            lead = [*lead, *self.context.lead(before, limit - len(ids))]
            task.parts = [self._part(part, own, task, lead) for part in parts if part]
            if own.replace_unk:
                give_surfaces(task.parts, self.source_vocabulary.pieces(text), self.source_vocabulary)
            self._ask(task)
            if len(parts) > 1:
                task.caution(
                    f"{len(ids):,} tokens, limit {most + 1:,} with the end mark: split into {len(parts)} parts"
                )
        return tasks

    def _part(self, ids: list[int], settings: ControlConfig, task: Task, lead: list[int]) -> Part:
        least, most = bounds(len(ids), settings)
        if least > most:
            task.caution(f"at least {least:,} and at most {most:,} tokens are asked for: the maximum holds")
        room = maximum(len(ids), settings)
        if self.positions is not None:
            room = min(room, self.positions - 1)  # the begin mark takes one
        most = min(most, room)
        return Part([*lead, *ids], settings, min(least, most), most, room, lead=len(lead))

    def _ask(self, task: Task) -> None:
        """What the line asks for, told to its parts: the beginning and the phrases of no source to the first."""
        request = task.request
        for i, part in enumerate(task.parts):
            source = request.source if len(task.parts) == 1 else self._source_text(part.text_ids)
            part.wishes, part.lm, part.shortlist = request.wishes(source, i == 0), request.lm, request.shortlist
        if task.parts and not is_blank(request.prefix):
            part, text = task.parts[0], self.target_cleaner.clean(request.prefix.rstrip())
            part.begins = one_line(self.target_cleaner.restore(text))
            part.prefix = tuple(self.target_vocabulary.encode(text)[: part.room])
            part.most = max(part.most, len(part.prefix))

    def _source_text(self, ids: Sequence[int]) -> str:
        return self.source_cleaner.restore(self.source_vocabulary.decode(ids))

    def _solve(self, parts: list[Part], n_best: int, settings: ControlConfig, penalty: Penalty) -> Iterator[int]:
        """Fill in the hypotheses of all parts; now and then, how many have been searched for."""
        solved = 0
        with self._evaluating():
            for done in self.solver.solving(parts, n_best, settings, penalty):
                solved += len(done)
                yield solved
        with self._inference():
            if asked := [part for part in parts if part.wishes]:
                insist = Insistence(
                    self.target_vocabulary,
                    self.target_cleaner.clean,
                    lambda found: self.written.text([found]),
                    lambda again, count: self.solver.solve(again, count, settings, penalty),
                )
                insist(asked, n_best, max(settings.beam, n_best))
            if any(part.chosen for part in parts):
                Choice(self.solver, settings, penalty, lambda found: self.written.text([found]))(parts, n_best)

    @contextmanager
    def _inference(self, precision: str = "float32") -> Iterator[None]:
        """No gradients, no dropout, on a GPU the half precision asked for; the model is left as it was.

        What is padded has no place for fewer bits on a processor: a line would depend on its neighbours.
        """
        half = self.device.type == "cuda" and precision in ("bfloat16", "float16")
        cast = torch.autocast(self.device.type, getattr(torch, precision) if half else None, enabled=half)
        with self._evaluating(), torch.inference_mode(), cast:
            yield

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """No dropout; the model is left as it was."""
        training = self.model.training
        if training:  # otherwise spare every call the walk through all modules
            self.model.eval()
        try:
            yield
        finally:
            self.model.train(training) if training else None


def _no_pause(line: str | Request) -> str | Request:
    """The line; None among lines is a pause for `stream` alone."""
    if line is None:
        raise TypeError("a line is a string; None is NoneType")
    return line


def _without_end(line: str) -> str:
    """A line as files give it, such as those of `open`, without what ends it."""
    return line.removesuffix("\n").removesuffix("\r") if line.endswith("\n") else line
