"""Raw text in, raw text out: the one way to translate, whether asked by a command, by Python or by validation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from nmt.batches.batch import collate, collate_source
from nmt.corpus.clean import Cleaner
from nmt.corpus.lines import is_blank, one_line
from nmt.errors import NmtError
from nmt.model.position.learned import Learned
from nmt.model.seq2seq import Seq2Seq
from nmt.schema import check
from nmt.search.batching import batches
from nmt.search.beam import search
from nmt.search.config import SearchConfig
from nmt.search.feed import chunks
from nmt.search.force import force
from nmt.search.hypothesis import Hypothesis
from nmt.search.length import Penalty, parse_penalty
from nmt.search.split import split_long
from nmt.search.translation import Candidate, Translation
from nmt.subwords.vocabulary import Vocabulary

_LOGITS = 1 << 25  # most numbers in the logits of one step, so that short sentences don't make endless batches
_UNSPACED = {"zh", "yue", "wuu", "lzh", "ja", "th", "lo", "km", "my", "bo", "dz"}  # written without spaces


class Translator:
    """A model with everything needed to translate raw text. What it gives depends on model, line and settings only.

    `max_source_tokens` counts the end mark; longer lines are split and rejoined. `settings` are the defaults that
    every method's keyword arguments of the same names override (beam, length_penalty, max_extra_tokens, …).
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
    ) -> None:
        self.model = model.to(device)
        self.source_vocabulary, self.target_vocabulary = source_vocabulary, target_vocabulary
        self.source_cleaner, self.target_cleaner = source_cleaner, target_cleaner
        self.max_source_tokens = max_source_tokens
        self.settings = settings or SearchConfig()
        self.device = torch.device(device)
        tables = [module.weight.size(0) for module in model.modules() if isinstance(module, Learned)]
        self.positions = min(tables, default=None)

    def translate(self, lines: Iterable[str], **overrides: Any) -> list[str]:
        """The best translation of every line, as a list of texts: ``translate(["A man.", "Two dogs."], beam=1)``.

        Settings that may be overridden are those of a recipe's [translate]: beam, length_penalty, max_extra_tokens,
        max_source_tokens, batch_tokens, batch_lines, buffer_lines, precision. Raises TypeError for a single string
        or lines that aren't strings, NmtError for settings that do not fit.
        """
        return [translation.text for translation in self.stream(lines, **overrides)]

    def stream(self, lines: Iterable[str | None], *, n_best: int = 1, **overrides: Any) -> Iterator[Translation]:
        """A translation for every line, in order, as soon as `buffer_lines` lines are read or the input pauses.

        None among the lines says that the input pauses (see feed.live): what was read is then translated at once.
        Blank lines give empty text without asking the model. Raises NmtError for settings that do not fit.
        """
        if isinstance(lines, str | bytes):
            raise TypeError(f"lines is one {type(lines).__name__}, not a list of lines: translate([text])")
        settings = self._settings(overrides)
        if not 1 <= n_best <= settings.beam:
            raise NmtError(
                f"n_best = {n_best} is more than beam = {settings.beam}, which keeps no more hypotheses than that",
                f"use a beam of {n_best}",
            )
        return self._stream(lines, n_best, settings, parse_penalty(settings.length_penalty))

    def _stream(
        self, lines: Iterable[str | None], n_best: int, settings: SearchConfig, penalty: Penalty
    ) -> Iterator[Translation]:
        number = 0
        for chunk in chunks(lines, settings.buffer_lines):
            tasks = self._tasks(chunk, number, settings)
            self._solve([part for task in tasks for part in task.parts], n_best, settings, penalty)
            for task in tasks:
                yield self._translation(task, n_best, penalty)
            number += len(chunk)

    def rescore(self, sources: Iterable[str], targets: Iterable[str], **overrides: Any) -> list[Candidate]:
        """The model's own scores of given translations, end mark counted: search's numbers for the same tokens.

        A pair of two blank lines scores 0, as translating a blank line does. `finished` is False where a side has more
        tokens than the model has positions and only its beginning counts. Raises ValueError when the counts differ.
        """
        return list(self.rescore_stream(zip(sources, targets, strict=True), **overrides))

    def rescore_stream(self, pairs: Iterable[tuple[str, str] | None], **overrides: Any) -> Iterator[Candidate]:
        """What `rescore` gives, in order, `buffer_lines` pairs at a time; None hands on what has come so far."""
        settings = self._settings(overrides)
        for chunk in chunks(pairs, settings.buffer_lines):
            yield from self._rescored(chunk, settings, parse_penalty(settings.length_penalty))

    def _settings(self, overrides: dict[str, Any]) -> SearchConfig:
        given = {name: value for name, value in overrides.items() if value is not None}
        settings = check(SearchConfig, {**self.settings.model_dump(), **given}, "translate") if given else self.settings
        longest = given.get("max_source_tokens") or self.max_source_tokens
        return settings.model_copy(update={"max_source_tokens": min(longest, self.positions or longest)})

    def _tasks(self, lines: Sequence[str], first: int, settings: SearchConfig) -> list[_Task]:
        """What is to be done for each line: nothing, one search, or one for each part."""
        if strange := next((line for line in lines if not isinstance(line, str)), None):
            raise TypeError(f"a line is a string; {strange!r} is {type(strange).__name__}")
        tasks = [_Task(first + i, _without_end(line)) for i, line in enumerate(lines)]
        asked = [task for task in tasks if not is_blank(task.source)]
        texts = [self.source_cleaner.clean(task.source) for task in asked]
        limit = (settings.max_source_tokens or self.max_source_tokens) - 1
        for task, text, ids in zip(asked, texts, self.source_vocabulary.encode_many(texts), strict=True):
            task.ids = ids
            parts = [ids] if len(ids) <= limit else split_long(text, limit, self.source_vocabulary.encode_many)
            task.parts = [_Part(part) for part in parts if part]
            if len(parts) > 1:
                task.cautions.append(
                    f"line {task.number + 1}: {len(ids):,} tokens, limit {limit + 1:,} with the end mark: "
                    f"split into {len(parts)} parts"
                )
        return tasks

    def _solve(self, parts: list[_Part], n_best: int, settings: SearchConfig, penalty: Penalty) -> None:
        """Search for the translations of all parts, those of similar length together."""
        widest = _LOGITS // (settings.beam * len(self.target_vocabulary))
        widest = min(widest, settings.batch_lines or widest)
        parts = sorted(parts, key=lambda part: -len(part.ids))
        with self._inference(settings):
            for batch in batches(parts, lambda part: len(part.ids) + 1, settings.batch_tokens, widest):
                found = self._search([part.ids for part in batch], n_best, settings, penalty)
                for part, hypotheses in zip(batch, found, strict=True):
                    part.hypotheses = hypotheses

    def _search(
        self, sources: list[list[int]], n_best: int, settings: SearchConfig, penalty: Penalty
    ) -> list[list[Hypothesis]]:
        vocabulary = self.target_vocabulary
        src_BS, keep_BS = collate_source(sources, eos=self.source_vocabulary.eos, pad=self.source_vocabulary.pad)
        keep_BS = keep_BS.to(self.device)
        memory = self.model.encode(src_BS.to(self.device), keep_BS)
        longest = math.inf if self.positions is None else self.positions - 1  # the begin mark takes one
        return search(
            self.model.step,
            self.model.start(memory, keep_BS),
            bos=vocabulary.bos,
            eos=vocabulary.eos,
            pad=vocabulary.pad,
            limits_B=[int(min(len(ids) + settings.max_extra_tokens, longest)) for ids in sources],
            beam=settings.beam,
            penalty=penalty,
            n_best=n_best,
            banned=[vocabulary.unk],
        )

    def _translation(self, task: _Task, n_best: int, penalty: Penalty) -> Translation:
        if not task.parts:
            return Translation(task.number, task.source, (Candidate("", 0.0, 0.0),))
        count = min(n_best, *(len(part.hypotheses) for part in task.parts)) if len(task.parts) > 1 else n_best
        ranked = zip(*(part.hypotheses[:count] for part in task.parts), strict=True)
        candidates = sorted((self._candidate(h, penalty) for h in ranked), key=lambda c: -c.score)
        source_tokens = tuple(map(self.source_vocabulary.piece, task.ids))
        return Translation(task.number, task.source, tuple(candidates), source_tokens, tuple(task.cautions))

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
        self, pairs: Sequence[tuple[str, str]], settings: SearchConfig, penalty: Penalty
    ) -> Iterator[Candidate]:
        sources = self.source_vocabulary.encode_many([self.source_cleaner.clean(source) for source, _ in pairs])
        targets = self.target_vocabulary.encode_many([self.target_cleaner.clean(target) for _, target in pairs])
        longest = None if self.positions is None else self.positions - 1
        order = sorted(range(len(pairs)), key=lambda i: -max(len(sources[i]), len(targets[i])))
        order = [i for i in order if not (is_blank(pairs[i][0]) and is_blank(pairs[i][1]))]
        gains: dict[int, list[float]] = {}
        with self._inference(settings):
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
    def _inference(self, settings: SearchConfig) -> Iterator[None]:
        """No gradients, no dropout, the precision asked for; the model is left as it was."""
        training = self.model.training
        self.model.eval()
        bfloat16 = torch.autocast(self.device.type, torch.bfloat16, enabled=settings.precision == "bfloat16")
        try:
            with torch.inference_mode(), bfloat16:
                yield
        finally:
            self.model.train(training)


def _without_end(line: str) -> str:
    """A line as files give it, such as those of `open`, without what ends it."""
    return line.removesuffix("\n").removesuffix("\r") if line.endswith("\n") else line


@dataclass
class _Part:
    """Ids to be translated at one go, and what was found."""

    ids: list[int]
    hypotheses: list[Hypothesis] = field(default_factory=list)


@dataclass
class _Task:
    """A line on its way."""

    number: int
    source: str
    ids: list[int] = field(default_factory=list)
    parts: list[_Part] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)
