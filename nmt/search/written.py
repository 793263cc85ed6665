"""From what search found to what is read: one translation from the hypotheses of all parts of a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from nmt.corpus.clean import Cleaner
from nmt.corpus.lines import one_line
from nmt.search.align import Words, aligned
from nmt.search.control.markup import Marked, units
from nmt.search.hypothesis import Hypothesis
from nmt.search.length import Penalty
from nmt.search.part import Part, Task
from nmt.search.translation import Candidate, Translation
from nmt.subwords.vocabulary import Vocabulary

_UNSPACED = {"zh", "yue", "wuu", "lzh", "ja", "th", "lo", "km", "my", "bo", "dz"}  # written without spaces


@dataclass(frozen=True)
class Written:
    """Vocabularies, and the cleaner that restores the target's text."""

    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    target_cleaner: Cleaner

    def translation(self, task: Task, n_best: int, penalty: Penalty) -> Translation:
        """The `n_best` best of what was found for all parts of the line, and what is to be known about it."""
        source, tag = task.request.source, task.request.tag
        if not task.parts:
            text = task.marked.put_back("", []) if task.marked else ""
            alternatives = (Candidate(text, 0.0, 0.0),)
            return Translation(
                task.number, task.original, alternatives, (), tuple(task.cautions), bool(task.marked), tag
            )
        count = min(n_best, *(len(part.hypotheses) for part in task.parts)) if len(task.parts) > 1 else n_best
        ranked = zip(*(part.hypotheses[:count] for part in task.parts), strict=True)
        candidates = [self._candidate(h, penalty) for h in ranked]
        if task.parts[0].maps:
            words = Words(source, [part.text_ids for part in task.parts], self.source_vocabulary)
            candidates = [self._aligned(task, words, rank, candidate) for rank, candidate in enumerate(candidates)]
        if task.marked:
            candidates = [self._tagged(task, task.marked, rank, found) for rank, found in enumerate(candidates)]
        candidates.sort(key=lambda candidate: -candidate.score)
        source_tokens = self.source_vocabulary.names(task.ids)
        for part in task.parts:
            for problem in self._problems(part, count):
                task.caution(problem)
        told, marked = tuple(task.cautions), task.marked is not None
        return Translation(task.number, task.original, tuple(candidates), source_tokens, told, marked, tag)

    def _aligned(self, task: Task, source: Words, rank: int, candidate: Candidate) -> Candidate:
        """The candidate of the hypotheses at `rank`, with its words aligned to the source's."""
        ids = [part.hypotheses[rank].ids for part in task.parts]
        target = Words(candidate.text, ids, self.target_vocabulary)
        return replace(candidate, alignment=aligned([part.maps[rank] for part in task.parts], source, target))

    def _tagged(self, task: Task, marked: Marked, rank: int, candidate: Candidate) -> Candidate:
        """The candidate of the hypotheses at `rank` with the source's tags."""
        source = Words(marked.text, [part.text_ids for part in task.parts], self.source_vocabulary, marked.units)
        ids = [part.hypotheses[rank].ids for part in task.parts]
        target = Words(candidate.text, ids, self.target_vocabulary, units(candidate.text))
        pairs = aligned([part.maps[rank] for part in task.parts], source, target)
        return replace(candidate, text=marked.put_back(candidate.text, pairs))

    def _problems(self, part: Part, count: int) -> Iterable[str]:
        """What any of the first `count` translations lacks of what was asked for, each once."""
        if not part.wishes and not part.begins:
            return []
        texts = [self.text([found]) for found in part.hypotheses[:count]]
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
            text=self.text(hypotheses),
            score=hypotheses[0].score
            if len(hypotheses) == 1
            else penalty.score(total, len(gains)) + sum(h.bonus for h in hypotheses),
            log_probability=total,
            tokens=self.target_vocabulary.names(ids),
            token_log_probabilities=gains,
            finished=all(h.finished for h in hypotheses),
        )

    def text(self, parts: Sequence[Hypothesis]) -> str:
        """What was found as one line for readers, parts rejoined as their language joins sentences."""
        read = self.target_vocabulary
        texts = [read.decode(h.ids) if h.pieces is None else read.decode_pieces(h.pieces) for h in parts]
        unspaced = self.target_cleaner.language.replace("_", "-").split("-")[0].lower() in _UNSPACED
        joiner = "" if unspaced and self.target_cleaner.moses is None else " "
        return one_line(self.target_cleaner.restore(joiner.join(texts)))
