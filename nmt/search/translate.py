"""Raw text in, raw text out: the one way to translate, whether asked by a command, by Python or by validation."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from nmt.batches.batch import collate
from nmt.corpus.clean import Cleaner
from nmt.corpus.lines import is_blank, one_line
from nmt.errors import NmtError
from nmt.model.position.learned import Learned
from nmt.model.seq2seq import Seq2Seq
from nmt.schema import check
from nmt.search.align import Words, aligned
from nmt.search.batching import batches
from nmt.search.config import SearchConfig
from nmt.search.control.config import ControlConfig
from nmt.search.control.insist import Insistence
from nmt.search.control.length import bounds
from nmt.search.control.request import Request
from nmt.search.feed import chunks
from nmt.search.force import force
from nmt.search.hypothesis import Hypothesis
from nmt.search.length import Penalty, parse_penalty
from nmt.search.part import Part, Task
from nmt.search.solve import Solver
from nmt.search.split import split_long
from nmt.search.tags import Tags, tagged
from nmt.search.translation import Candidate, Translation
from nmt.subwords.vocabulary import Vocabulary

_UNSPACED = {"zh", "yue", "wuu", "lzh", "ja", "th", "lo", "km", "my", "bo", "dz"}  # written without spaces


class Translator:
    """A model with everything needed to translate raw text. What it gives depends on model, line and settings only.

    `max_source_tokens` counts the end mark; longer lines are split and rejoined. `settings` are the defaults that
    every method's keyword arguments of the same names override (beam, length_penalty, max_extra_tokens, …); what else
    they may set stands in ControlConfig. `needs_tag`: no line can do without one of the source vocabulary's tags.
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
    ) -> None:
        self.model = model.to(device)
        self.source_vocabulary, self.target_vocabulary = source_vocabulary, target_vocabulary
        self.source_cleaner, self.target_cleaner = source_cleaner, target_cleaner
        self.max_source_tokens = max_source_tokens
        self.settings = settings or SearchConfig()
        self.device = torch.device(device)
        self.tags = Tags(source_vocabulary, needs_tag)
        tables = [module.weight.size(0) for module in model.modules() if isinstance(module, Learned)]
        self.positions = min(tables, default=None)
        self.solver = Solver(self.model, source_vocabulary, target_vocabulary, self.device)

    def translate(self, lines: Iterable[str | Request], *, tag: str = "", **overrides: Any) -> list[str]:
        """The best translation of every line, as a list of texts: ``translate(["A man.", "Two dogs."], beam=1)``.

        Settings that may be overridden are those of a recipe's [translate] (beam, length_penalty, max_extra_tokens,
        max_source_tokens, batch_tokens, batch_lines, buffer_lines, precision) and those of ControlConfig. `tag` is put
        before every line that has none of its own, such as ``<2de>``. Raises
        TypeError for a single string or lines that aren't strings, NmtError for settings that do not fit.
        """
        return [translation.text for translation in self.stream(lines, tag=tag, **overrides)]

    def stream(
        self,
        lines: Iterable[str | Request | None],
        *,
        n_best: int = 1,
        alignment: bool = False,
        tag: str = "",
        **overrides: Any,
    ) -> Iterator[Translation]:
        """A translation for every line, in order, as soon as `buffer_lines` lines are read or the input pauses.

        None among the lines says that the input pauses (see feed.live): what was read is then translated at once.
        `alignment` tells for every word of a translation which source word it comes from (see align.py).
        Blank lines give empty text without asking the model. A Request asks for more than a line alone; `tag` is
        for lines without one. Raises NmtError for settings that do not fit, and for a tag that is missing or unknown.
        """
        if isinstance(lines, str | bytes):
            raise TypeError(f"lines is one {type(lines).__name__}, not a list of lines: translate([text])")
        settings = self._settings(overrides)
        if not 1 <= n_best <= settings.beam and not (settings.sample and n_best > 0):
            raise NmtError(
                f"n_best = {n_best} is more than beam = {settings.beam}, which keeps no more hypotheses than that",
                f"use a beam of {n_best}",
            )
        requests = (Request(line) if isinstance(line, str) else line for line in lines)
        if tag:
            requests = (tagged(request, tag) for request in requests)
        return self._stream(requests, n_best, alignment, settings, parse_penalty(settings.length_penalty))

    def _stream(
        self,
        requests: Iterable[Request | None],
        n_best: int,
        alignment: bool,
        settings: ControlConfig,
        penalty: Penalty,
    ) -> Iterator[Translation]:
        number = 0
        for chunk in chunks(requests, settings.buffer_lines):
            tasks = self._tasks(chunk, number, settings)
            parts = [part for task in tasks for part in task.parts]
            self._solve(parts, n_best, settings, penalty)
            if alignment:
                with self._inference(settings.precision):
                    self.solver.look(parts, n_best, settings)
            for task in tasks:
                yield self._translation(task, n_best, penalty)
            number += len(chunk)

    def rescore(
        self, sources: Iterable[str], targets: Iterable[str], *, tag: str = "", **overrides: Any
    ) -> list[Candidate]:
        """The model's own scores of given translations, end mark counted: search's numbers for the same tokens.

        A pair of two blank lines scores 0, as translating a blank line does. `finished` is False where a side has more
        tokens than the model has positions and only its beginning counts. Raises ValueError when the counts differ.
        """
        return list(self.rescore_stream(zip(sources, targets, strict=True), tag=tag, **overrides))

    def rescore_stream(
        self, pairs: Iterable[tuple[str, str] | None], *, tag: str = "", **overrides: Any
    ) -> Iterator[Candidate]:
        """What `rescore` gives, in order, `buffer_lines` pairs at a time; None hands on what has come so far."""
        settings = self._settings(overrides)
        lead = self.tags.lead(tag)
        for chunk in chunks(pairs, settings.buffer_lines):
            yield from self._rescored(chunk, lead, settings, parse_penalty(settings.length_penalty))

    def _settings(self, overrides: Mapping[str, Any]) -> ControlConfig:
        given = {name: value for name, value in overrides.items() if value is not None}
        settings = check(ControlConfig, {**self.settings.model_dump(), **given}, "translate")
        longest = given.get("max_source_tokens") or self.max_source_tokens
        return settings.model_copy(update={"max_source_tokens": min(longest, self.positions or longest)})

    def _tasks(self, requests: Sequence[Request], first: int, settings: ControlConfig) -> list[Task]:
        """What is to be done for each line: nothing, one search, or one for each part."""
        if strange := next((request for request in requests if not isinstance(request, Request)), None):
            raise TypeError(f"a line is a string; {strange!r} is {type(strange).__name__}")
        tasks = [Task(first + i, request) for i, request in enumerate(requests)]
        asked = [task for task in tasks if not is_blank(task.request.source)]
        texts = [self.source_cleaner.clean(_without_end(task.request.source)) for task in asked]
        most = (settings.max_source_tokens or self.max_source_tokens) - 1
        for task, text, ids in zip(asked, texts, self.source_vocabulary.encode_many(texts), strict=True):
            task.ids = ids
            own, lead = task.own_settings(settings), self.tags.lead(task.request.tag, f"line {task.number + 1}: ")
            limit = max(most - len(lead), 1)
            parts = [ids] if len(ids) <= limit else split_long(text, limit, self.source_vocabulary.encode_many)
            task.parts = [self._part(part, own, task, lead) for part in parts if part]
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
        room = sys.maxsize if self.positions is None else self.positions - 1  # the begin mark takes one
        most = min(most, room)
        return Part([*lead, *ids], settings, min(least, most), most, room, lead=len(lead))

    def _ask(self, task: Task) -> None:
        """What the line asks for, told to its parts: the beginning and the phrases of no source to the first."""
        request = task.request
        for i, part in enumerate(task.parts):
            source = request.source if len(task.parts) == 1 else self._source_text(part.ids)
            part.wishes = request.wishes(source, first=i == 0)
        if task.parts and not is_blank(request.prefix):
            part, text = task.parts[0], self.target_cleaner.clean(request.prefix.rstrip())
            part.begins = one_line(self.target_cleaner.restore(text))
            part.prefix = tuple(self.target_vocabulary.encode(text)[: part.room])
            part.most = max(part.most, len(part.prefix))

    def _source_text(self, ids: Sequence[int]) -> str:
        return self.source_cleaner.restore(self.source_vocabulary.decode(ids))

    def _solve(self, parts: list[Part], n_best: int, settings: ControlConfig, penalty: Penalty) -> None:
        with self._inference():
            self.solver.solve(parts, n_best, settings, penalty)
            if asked := [part for part in parts if part.wishes]:
                insist = Insistence(
                    self.target_vocabulary,
                    self.target_cleaner.clean,
                    lambda ids: self._text([ids]),
                    lambda again, count: self.solver.solve(again, count, settings, penalty),
                )
                insist(asked, n_best, max(settings.beam, n_best))

    def _translation(self, task: Task, n_best: int, penalty: Penalty) -> Translation:
        source = task.request.source
        if not task.parts:
            return Translation(task.number, source, (Candidate("", 0.0, 0.0),), cautions=tuple(task.cautions))
        count = min(n_best, *(len(part.hypotheses) for part in task.parts)) if len(task.parts) > 1 else n_best
        ranked = zip(*(part.hypotheses[:count] for part in task.parts), strict=True)
        candidates = [self._candidate(h, penalty) for h in ranked]
        if task.parts[0].maps:
            words = Words(source, [part.text_ids for part in task.parts], self.source_vocabulary)
            candidates = [self._aligned(task, words, rank, candidate) for rank, candidate in enumerate(candidates)]
        candidates.sort(key=lambda candidate: -candidate.score)
        source_tokens = tuple(map(self.source_vocabulary.piece, task.ids))
        for part in task.parts:
            for problem in self._problems(part, count):
                task.caution(problem)
        return Translation(task.number, source, tuple(candidates), source_tokens, tuple(task.cautions))

    def _aligned(self, task: Task, source: Words, rank: int, candidate: Candidate) -> Candidate:
        """The candidate of the hypotheses at `rank`, with its words aligned to the source's."""
        ids = [part.hypotheses[rank].ids for part in task.parts]
        target = Words(candidate.text, ids, self.target_vocabulary)
        return replace(candidate, alignment=aligned([part.maps[rank] for part in task.parts], source, target))

    def _problems(self, part: Part, count: int) -> Iterable[str]:
        """What any of the first `count` translations lacks of what was asked for, each once."""
        if not part.wishes and not part.begins:
            return []
        texts = [self._text([found.ids]) for found in part.hypotheses[:count]]
        problems = [f"in the translation, {problem}" for text in texts for problem in part.wishes.problems(text)]
        if not all(text.startswith(part.begins) for text in texts):
            problems.append(f"the translation does not begin with its prefix {part.begins!r}")
        return dict.fromkeys(problems)

    def _candidate(self, hypotheses: Sequence[Hypothesis], penalty: Penalty) -> Candidate:
        """One translation from one hypothesis of each part of a line, nearly always one alone."""
        ids = [token for h in hypotheses for token in h.ids]
        gains = tuple(gain for h in hypotheses for gain in h.token_log_probabilities)
        total = sum(h.log_probability for h in hypotheses)
        return Candidate(
            text=self._text([h.ids for h in hypotheses]),
            score=hypotheses[0].score if len(hypotheses) == 1 else penalty.score(total, len(gains)),
            log_probability=total,
            tokens=tuple(map(self.target_vocabulary.piece, ids)),
            token_log_probabilities=gains,
            finished=all(h.finished for h in hypotheses),
        )

    def _text(self, parts: Sequence[Sequence[int]]) -> str:
        """Ids as one line for readers, parts rejoined as their language joins sentences."""
        texts = [self.target_vocabulary.decode(ids) for ids in parts]
        unspaced = self.target_cleaner.language.replace("_", "-").split("-")[0].lower() in _UNSPACED
        joiner = "" if unspaced and self.target_cleaner.moses is None else " "
        return one_line(self.target_cleaner.restore(joiner.join(texts)))

    def _rescored(
        self, pairs: Sequence[tuple[str, str]], lead: list[int], settings: SearchConfig, penalty: Penalty
    ) -> Iterator[Candidate]:
        sources = self.source_vocabulary.encode_many([self.source_cleaner.clean(source) for source, _ in pairs])
        sources = [[*lead, *ids] for ids in sources] if lead else sources
        targets = self.target_vocabulary.encode_many([self.target_cleaner.clean(target) for _, target in pairs])
        longest = None if self.positions is None else self.positions - 1
        order = sorted(range(len(pairs)), key=lambda i: -max(len(sources[i]), len(targets[i])))
        order = [i for i in order if not (is_blank(pairs[i][0]) and is_blank(pairs[i][1]))]
        gains: dict[int, list[float]] = {}
        with self._inference(settings.precision):
            for rows in batches(
                order, lambda i: max(len(sources[i]), len(targets[i])) + 1, settings.batch_tokens, len(order)
            ):
                batch = collate(
                    [sources[i][:longest] for i in rows],
                    [targets[i][:longest] for i in rows],
                    bos=self.target_vocabulary.bos,
                    eos=self.target_vocabulary.eos,
                    pad=self.target_vocabulary.pad,
                )
                gains.update(
                    zip(rows, force(self.model, batch.to(self.device), self.target_vocabulary.pad), strict=True)
                )
        for i, (_, target) in enumerate(pairs):
            if i not in gains:
                yield Candidate(target, 0.0, 0.0)
                continue
            total = math.fsum(gains[i])
            whole = len(gains[i]) == len(targets[i]) + 1 and (longest is None or len(sources[i]) <= longest)
            tokens = tuple(map(self.target_vocabulary.piece, targets[i]))
            yield Candidate(target, penalty.score(total, len(gains[i])), total, tokens, tuple(gains[i]), whole)

    @contextmanager
    def _inference(self, precision: str = "float32") -> Iterator[None]:
        """No gradients, no dropout, the precision asked for; the model is left as it was."""
        training = self.model.training
        self.model.eval()
        bfloat16 = torch.autocast(self.device.type, torch.bfloat16, enabled=precision == "bfloat16")
        try:
            with torch.inference_mode(), bfloat16:
                yield
        finally:
            self.model.train(training)


def _without_end(line: str) -> str:
    """A line as files give it, such as those of `open`, without what ends it."""
    return line.removesuffix("\n").removesuffix("\r") if line.endswith("\n") else line
